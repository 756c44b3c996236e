"""``manage.py replica NAME``: one replica, with the demo attached if it is on."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser
from starlette.types import ASGIApp, Receive, Scope, Send

from billing_agent.agent.database import THREADS
from billing_agent.executor.config import OutputMode
from billing_agent.management.options import UNLISTED
from billing_agent.replica import Replica, open_replica
from billing_agent.serving import CannotServe, serve
from web.demo import attach
from web.pooling import database_reached, shared_connections
from web.production import check_secrets

# What of Django a replica serves; pages and token issuer are the web process's.
_DJANGO = ("/admin/", "/static/")
# Anybody may ask for the admin's login page, so it gets no more than these beside
# the tools' own connections.
_ADMIN_CONNECTIONS = 2


class ReplicaProcess:
    """Opens the replica on the serving loop and hands it every request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._replica: Replica | None = None

    async def start(self) -> None:
        """Connect, build the executor, begin to serve."""
        with database_reached():
            self._replica = await open_replica(self._name)
        django = dict.fromkeys(_DJANGO, cast("ASGIApp", get_asgi_application()))
        if settings.DEMO_SWITCHES:
            attach.serve(self._replica, elsewhere=django)
        else:
            executor = self._replica.executor(
                fixed=settings.CONTINUITY == "on",
                output_mode=OutputMode(settings.OUTPUT),
                store="memory" if settings.SESSIONS == "memory" else "shared",
                hears_channel=settings.CANCEL == "bus",
            )
            self._replica.serve(executor, elsewhere=django)

    async def stop(self) -> None:
        """Drain and close."""
        if self._replica is not None:
            await self._replica.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the port opens after ``start`` only."""
        assert self._replica is not None  # noqa: S101
        await self._replica(scope, receive, send)


class Command(BaseCommand):
    """Serve one replica until SIGTERM or SIGINT."""

    help = "Serve the billing agent as the named replica of REPLICAS."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the name and where to listen."""
        parser.add_argument("name", help="such as replica-a")
        parser.add_argument("--port", type=int, help="default: the one in REPLICAS")
        parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")

    def handle(self, *, name: str, port: int | None, host: str, **options: Any) -> None:
        """Serve; exit 2 on a name, port or setting that cannot be served."""
        url = settings.REPLICAS.get(name)
        if url is None:
            known = ", ".join(settings.REPLICAS)
            raise CommandError(f"REPLICAS has {known}, not {name}", returncode=2)
        process = ReplicaProcess(name)
        try:
            check_secrets(host)
            with shared_connections(THREADS + _ADMIN_CONNECTIONS):
                serve(
                    process,
                    port=port or urlsplit(url).port or 8001,
                    host=host,
                    startup=process.start,
                    shutdown=process.stop,
                )
        except CannotServe as error:
            raise CommandError(str(error), returncode=2) from None
