"""``manage.py serve_web``: the web process, pages and live updates."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from billing_agent.management.options import UNLISTED
from billing_agent.serving import CannotServe, serve
from web.pooling import close_shared, share_connections
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
        from web.static_files import collect_when_changed

        # Whitenoise looks for the files once, when the application is made.
        collect_when_changed()
        from web.asgi import application
        from web.demo.live import Live

        share_connections()
        live = Live(settings.DATABASE_URL)
        try:
            check_secrets(options["host"])
            serve(
                application,
                port=options["port"],
                host=options["host"],
                startup=live.start,
                shutdown=live.stop,
            )
        except CannotServe as error:
            self.stderr.write(str(error))
            sys.exit(2)
        finally:
            close_shared()
