"""``manage.py router``: the embedded router behind its identity filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from billing_agent.identity.guard import guarded
from billing_agent.management.options import UNLISTED
from billing_agent.router.contexts import TaskContexts
from billing_agent.router.proxy import Router, no_contexts
from billing_agent.serving import CannotServe, serve

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Serve the router until SIGTERM or SIGINT."""

    help = (
        "Route A2A requests to the replicas of REPLICAS. Without DATABASE_URL a "
        "request that names only a task goes to any of them."
    )
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare where to listen."""
        parser.add_argument("--port", type=int, default=8080, help="default: 8080")
        parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")

    def handle(self, *, port: int, host: str, **options: Any) -> None:
        """Serve; exit 2 when it must not or cannot."""
        url = settings.DATABASE_URL
        contexts = TaskContexts(url) if url else None
        router = Router(settings.REPLICAS, task_contexts=contexts or no_contexts)

        async def startup() -> None:
            if contexts:
                await contexts.open()

        async def shutdown() -> None:
            await router.drain(settings.DRAIN_GRACE)
            if contexts:
                await contexts.aclose()

        try:
            serve(
                guarded(router, part="router", pass_token=True),
                port=port,
                host=host,
                startup=startup,
                shutdown=shutdown,
            )
        except CannotServe as error:
            raise CommandError(str(error), returncode=2) from None
