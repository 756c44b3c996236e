"""``manage.py demo``: every part of the demo on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandParser

from billing_agent.management.options import UNLISTED
from billing_agent.serving import PortTaken
from web.demo.keeper import DemoError, PartFailed
from web.demo.supervisor import Demo

if TYPE_CHECKING:
    from web.demo.running import RunningDemo


class Command(BaseCommand):
    """Run PostgreSQL, the web pages, the router and the replicas."""

    help = "Run every part of the demo until Ctrl-C."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the ports, the number of replicas and the browser."""
        parser.add_argument(
            "--port-base",
            type=int,
            default=8000,
            help="port of the pages; the replicas follow, the router is 80 above"
            " (default: 8000)",
        )
        parser.add_argument(
            "--replicas", type=int, choices=(1, 2), default=2, help="default: 2"
        )
        parser.add_argument(
            "--no-open", action="store_true", help="do not open a browser"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped; exit 2 with one line when it cannot."""
        try:
            demo = Demo(port_base=options["port_base"], replicas=options["replicas"])
            demo.run(lambda running: self._greet(running, not options["no_open"]))
        except (DemoError, PortTaken) as error:
            if isinstance(error, PartFailed):
                self.stderr.write(error.output)
            self.stderr.write(str(error))
            sys.exit(2)

    def _greet(self, running: RunningDemo, browser: bool) -> None:
        self.stdout.write(f"ready {running.web_url}/")
        self.stdout.flush()
        if browser and _has_display():
            webbrowser.open(running.web_url)


def _has_display() -> bool:
    if sys.platform in {"win32", "darwin"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
