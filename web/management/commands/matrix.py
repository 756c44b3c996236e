"""``manage.py matrix``: the story under all sixteen configurations."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from billing_agent.management.options import UNLISTED
from orchestrator import printing
from orchestrator.matrix import as_json, play_matrix
from web.demo.visit import visit


class Command(BaseCommand):
    """Play every combination of the switches and hold each run against the rule."""

    help = (
        "Play all sixteen combinations."
        " Exit 0: all as predicted, 1: a surprise, 2: one could not run."
    )
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the form of the output."""
        parser.add_argument("--json", action="store_true", help="print one object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play, print, and say by the exit code whether it went as predicted."""
        cells = visit(play_matrix(), self.stderr.write)
        if options["json"]:
            self.stdout.write(json.dumps(as_json(cells), ensure_ascii=False))
        else:
            self.stdout.write(printing.rendered(printing.matrix(cells)), ending="")
        if any(cell.found is None for cell in cells):
            sys.exit(2)
        sys.exit(0 if all(cell.as_predicted for cell in cells) else 1)
