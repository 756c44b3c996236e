"""``manage.py route CONTEXT_ID``: the routing arithmetic, shown."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, cast

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from billing_agent.management.options import UNLISTED
from billing_agent.router.routing import route, scores

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Print every replica's digest for a context id, and which is the highest."""

    help = "Show which replica a context id belongs to, and why."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the context id and the form of the answer."""
        parser.add_argument("context_id", help="the conversation, such as ctx-41")
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print one object"
        )

    def handle(self, *, context_id: str, as_json: bool, **options: Any) -> None:
        """Print the digests; exit 2 for an empty id, which names no conversation."""
        if not context_id:
            raise CommandError(
                "an empty context id names no conversation", returncode=2
            )
        replicas = list(settings.REPLICAS)
        digests, chosen = scores(context_id, replicas), route(context_id, replicas)
        if as_json:
            answer = {"context_id": context_id, "replica": chosen, "scores": digests}
            self.stdout.write(json.dumps(answer))
            return
        heading = escape(f"sha256({context_id}:replica)")
        table = Table("replica", heading, box=None)
        for replica, digest in digests.items():
            style = "bold" if replica == chosen else "dim"
            table.add_row(replica, digest, style=style)
        console = Console(file=cast("IO[str]", self.stdout), highlight=False)
        console.print(table)
        console.print(
            f"{context_id} belongs to {chosen}: the highest digest", markup=False
        )
