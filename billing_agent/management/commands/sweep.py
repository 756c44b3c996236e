"""``manage.py sweep``: fail tasks that nobody runs any more, once or for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser
from psycopg import OperationalError

from billing_agent.executor.registry import RunRegistry
from billing_agent.management.options import UNLISTED
from billing_agent.stores.pool import open_pool
from billing_agent.stores.tasks import TaskStore
from billing_agent.sweeper import Sweeper


class Command(BaseCommand):
    """Sweep beside the replicas, which sweep by themselves as well."""

    help = "Fail tasks that outlived RUN_TIMEOUT and that no replica runs."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare whether to go on."""
        parser.add_argument(
            "--watch", action="store_true", help="go on every SWEEP_INTERVAL seconds"
        )

    def handle(self, *, watch: bool, **options: Any) -> None:
        """Sweep; exit 2 when the database cannot be reached."""
        if not settings.DATABASE_URL:
            message = "no demo runs here, and DATABASE_URL is not set"
            raise CommandError(message, returncode=2)
        try:
            asyncio.run(self._sweep(watch))
        except OperationalError:
            message = "the database of DATABASE_URL cannot be reached"
            raise CommandError(message, returncode=2) from None
        except KeyboardInterrupt:
            return

    async def _sweep(self, watch: bool) -> None:
        pool = await open_pool(settings.DATABASE_URL, 2)
        async with pool:
            sweeper = Sweeper(
                pool,
                TaskStore(pool),
                RunRegistry(),
                run_timeout=settings.RUN_TIMEOUT,
                interval=settings.SWEEP_INTERVAL,
            )
            if watch:
                await sweeper.run()
            self.stdout.write(f"{await sweeper.sweep()} tasks failed")
