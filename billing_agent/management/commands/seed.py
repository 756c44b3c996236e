"""``manage.py seed``: put the demo's invoices into the database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from billing_agent.management.database import need_database
from billing_agent.management.options import UNLISTED
from billing_agent.seed import seed


class Command(BaseCommand):
    """Create the invoices that are missing; running it again changes nothing."""

    help = "Create the demo's invoices; what exists is left as it is."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def handle(self, *args: Any, **options: Any) -> None:
        """Write what is missing; exit 2 when the database cannot be reached."""
        need_database()
        created = seed()
        if options["verbosity"]:
            self.stdout.write(f"seed: {created} invoice lines created")
