"""``manage.py prepare``: make a database ready for the parts; safe to repeat."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from billing_agent.management.database import need_database
from billing_agent.management.options import UNLISTED


class Command(BaseCommand):
    """Apply the migrations and write the invoices that are missing."""

    help = "Apply the migrations and write the invoices that are missing."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then seed; exit 2 when the database cannot be reached."""
        need_database()
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
        call_command("seed")
