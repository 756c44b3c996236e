"""Which parts the demo has, where each listens, and what it is told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

from billing_agent.serving import PortTaken, check_port
from web.demo.keeper import DemoError, Part, answers_at

ROUTER_OFFSET = 80
LAST_PORT = 65535
NAMES = ("replica-a", "replica-b")


@dataclass(frozen=True, slots=True)
class Layout:
    """The ports of a demo: web at ``port_base``, router 80 above, replicas next to it.

    ``replicas`` is one or two.

    Raises:
        DemoError: there are no such ports.
    """

    port_base: int = 8000
    replicas: int = 2

    def __post_init__(self) -> None:
        highest = LAST_PORT - ROUTER_OFFSET
        if not 1 <= self.port_base <= highest:
            raise DemoError(f"--port-base is 1 to {highest}, not {self.port_base}")

    @property
    def web_url(self) -> str:
        """Where the pages are."""
        return _local(self.port_base)

    @property
    def router_url(self) -> str:
        """Where A2A requests go."""
        return _local(self.port_base + ROUTER_OFFSET)

    @property
    def replica_urls(self) -> dict[str, str]:
        """Names and addresses of the replicas, in routing order."""
        return {
            name: _local(self.port_base + number)
            for number, name in enumerate(NAMES[: self.replicas], start=1)
        }

    @property
    def ports(self) -> list[int]:
        """Every port the demo listens on."""
        replicas = range(self.port_base + 1, self.port_base + 1 + self.replicas)
        return [self.port_base, self.port_base + ROUTER_OFFSET, *replicas]

    def free(self) -> bool:
        """Return whether nothing listens on any of the ports."""
        try:
            for port in self.ports:
                check_port(port)
        except PortTaken:
            return False
        return True

    def settings(self, database_url: str) -> dict[str, str]:
        """Return the settings that tell the parts about each other."""
        pairs = self.replica_urls.items()
        return {
            "DATABASE_URL": database_url,
            "WEB_URL": self.web_url,
            "PUBLIC_URL": self.router_url,
            "REPLICAS": ",".join(f"{name}={url}" for name, url in pairs),
            "DEMO_SWITCHES": "1",
            # Ctrl-C has to end everything within five seconds.
            "DRAIN_GRACE": os.environ.get("DRAIN_GRACE") or "2",
        }

    def parts(self) -> list[Part]:
        """Return the parts, the slowest to start first."""
        replicas = [
            _part(name, url, "replica", name) for name, url in self.replica_urls.items()
        ]
        return [
            *replicas,
            _part("router", self.router_url, "router"),
            _part("web", self.web_url, "serve_web"),
        ]


def _part(name: str, url: str, *command: str) -> Part:
    port = url.rpartition(":")[2]
    return Part(
        name,
        ("manage.py", *command, "--port", port),
        url,
        partial(answers_at, url),
    )


def _local(port: int) -> str:
    return f"http://127.0.0.1:{port}"
