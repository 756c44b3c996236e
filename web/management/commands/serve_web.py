"""``manage.py serve_web``: the web process, pages and live updates."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from billing_agent.management.options import UNLISTED
from billing_agent.serving import CannotServe, serve
from web.pooling import database_reached, shared_connections
from web.production import check_secrets


class Command(BaseCommand):
    """Serve the pages of the orchestrator and the token issuer."""

    help = "Serve the pages, the token issuer and the admin."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the address to listen on."""
        port = urlsplit(settings.WEB_URL).port or 8000
        parser.add_argument(
            "--port", type=int, default=port, help="default: the one in WEB_URL"
        )
        parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until stopped; exit 2 with one line when it must not or cannot."""
        try:
            check_secrets(options["host"])
            with shared_connections():
                self._serve(options["host"], options["port"])
        except CannotServe as error:
            self.stderr.write(str(error))
            sys.exit(2)

    def _serve(self, host: str, port: int) -> None:
        from web.static_files import collect_when_changed

        # Whitenoise looks for the files once, when the application is made.
        collect_when_changed()
        from web.asgi import application
        from web.demo.live import Live

        live = Live(settings.DATABASE_URL)

        async def start() -> None:
            with database_reached():
                await live.start()

        serve(application, port=port, host=host, startup=start, shutdown=live.stop)
