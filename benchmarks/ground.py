"""What measurements stand on: demos, and single parts beside one database."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen

import httpx

from billing_agent.card import CARD_PATH
from billing_agent.identity.kept import kept
from orchestrator import deployment
from orchestrator.deployment import Deployment
from web.demo.keeper import Part, spawn, tail
from web.demo.layout import Layout
from web.demo.running import RunningDemo
from web.demo.supervisor import Demo

START_SECONDS = 60.0
STOCK = {"OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "true"}
"""What a2a-sdk does when nobody tells it: the peer is tuned in neither direction."""
UNBOUNDED = {"RATE_PER_SECOND": "1e6", "RATE_BURST": "1000000"}
"""A load generator is one caller."""


class NotMeasured(Exception):
    """A measurement could not be made; the message is one line."""


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def free_base() -> int:
    """Return a port base whose every port is free."""
    while True:
        base = secrets.choice(range(20_000, 30_000, 100))
        if Layout(base).free():
            return base


@contextmanager
def demo(**settings: str) -> Iterator[RunningDemo]:
    """Run a whole demo in a folder of its own; the orchestrator here talks to it."""
    with _running(Layout.parts, settings) as running, deployment.using(_of(running)):
        yield running


@contextmanager
def foundation() -> Iterator[RunningDemo]:
    """Run only what single parts stand on: PostgreSQL, invoices, the token issuer."""

    def issuer(layout: Layout) -> list[Part]:
        return [part for part in layout.parts() if part.name == "web"]

    with _running(issuer, {}) as running:
        yield running


@contextmanager
def _running(
    parts_of: Callable[[Layout], list[Part]], settings: dict[str, str]
) -> Iterator[RunningDemo]:
    folder = Path(tempfile.mkdtemp(prefix="i8812-bench-"))
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    port_base = free_base()
    try:
        with Demo(
            port_base=port_base,
            var_dir=folder,
            environment={**inherited, **UNBOUNDED, **settings},
            parts=parts_of(Layout(port_base)),
            say=lambda line: None,
        ) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replica(base: RunningDemo, **settings: str) -> Iterator[str]:
    """Run one replica as a deployment has it, without the demo; yield its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    told = {"DEMO_SWITCHES": "0", "REPLICAS": f"replica-a={url}", **settings}
    command = ("manage.py", "replica", "replica-a", "--port", str(port))
    with part(base, command, url, **told):
        yield url


@contextmanager
def router(base: RunningDemo, replica_url: str) -> Iterator[str]:
    """Run the embedded router in front of one replica; yield its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    told = {"DEMO_SWITCHES": "0", "REPLICAS": f"replica-a={replica_url}"}
    with part(base, ("manage.py", "router", "--port", str(port)), url, **told):
        yield url


@contextmanager
def peer(base: RunningDemo, *, durable: bool) -> Iterator[str]:
    """Run the peer, see ``benchmarks.peer``; yield its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["--durable"] if durable else []
    command = ("benchmarks/peer.py", "--port", str(port), *options)
    with part(base, command, url, **STOCK):
        yield url


@contextmanager
def part(
    base: RunningDemo, command: Sequence[str], url: str, **settings: str
) -> Iterator[None]:
    """Run a script of the project until the block ends.

    Raises:
        NotMeasured: it ended, or did not serve an agent card in time.
    """
    log = base.var_dir / "log" / f"bench-{secrets.token_hex(4)}.log"
    environment = {**os.environ, **base.environment, **UNBOUNDED, **settings}
    process = spawn(tuple(command), environment, log)
    try:
        wait_for_card(url, process)
        yield
    except NotMeasured as failure:
        raise NotMeasured(f"{failure}: {tail(log, 1)}") from None
    finally:
        if process.stdin is not None:
            process.stdin.close()
        process.wait()


def wait_for_card(url: str, process: Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(trust_env=False, timeout=5) as client:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(httpx.TransportError):
                if client.get(url + CARD_PATH).is_success:
                    return
            time.sleep(0.05)
    raise NotMeasured(f"nothing serves an agent card at {url}")


def token(running: RunningDemo, subject: str, tenant: str = "acme") -> str:
    """Return a bearer token: the orchestrator's for its own subjects, else another's.

    Raises:
        httpx.HTTPError: the issuer gave none.
    """
    client = "orchestrator" if subject.startswith("orchestrator/") else "workshop"
    secret = kept(running.var_dir / f"client-{client}", secrets.token_urlsafe)
    form = {"grant_type": "client_credentials", "tenant": tenant, "subject": subject}
    url = f"{running.web_url}/oauth/token"
    answer = httpx.post(url, data=form, auth=(client, secret), trust_env=False)
    issued: str = answer.raise_for_status().json()["access_token"]
    return issued


def _of(running: RunningDemo) -> Deployment:
    return Deployment(
        database=running.environment["DATABASE_URL"],
        public_url=running.router_url,
        issuer=running.web_url,
        client_id="orchestrator",
        client_secret=(running.var_dir / "client-orchestrator").read_text(),
        replicas=running.replicas,
    )
