"""``manage.py walkthrough``: the story once, measured and held against the rule."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandParser

from billing_agent.management.options import UNLISTED
from orchestrator import printing, runs, story
from orchestrator.config import Configuration, Output, Sessions, Toggle
from orchestrator.report import report
from web.demo.visit import visit

if TYPE_CHECKING:
    from enum import StrEnum

    from orchestrator.events import Event

_SWITCHES: dict[str, tuple[type[StrEnum], str]] = {
    "continuity": (Toggle, "create the session under the context id"),
    "affinity": (Toggle, "route by the context id, not turn by turn"),
    "output": (Output, "what leaves the agent: the result, or every event"),
    "sessions": (Sessions, "where a replica keeps its sessions"),
}


class Command(BaseCommand):
    """Play both turns in a new run, against the running demo or one of its own."""

    help = "Play the story. Exit 0: as predicted, 1: a surprise, 2: it could not run."
    requires_system_checks: list[str] = []
    suppressed_base_arguments = UNLISTED

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare one option for each switch, and the form of the output."""
        start = Configuration().as_dict()
        for name, (kind, text) in _SWITCHES.items():
            parser.add_argument(
                f"--{name}",
                choices=[str(value) for value in kind],
                default=start[name],
                help=f"{text} (default: {start[name]})",
            )
        parser.add_argument("--json", action="store_true", help="print one object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play, print, and say by the exit code whether it went as predicted."""
        chosen = Configuration.parse({name: options[name] for name in _SWITCHES})
        run_id, events = visit(_play(chosen), self.stderr.write)
        found = report(run_id, chosen, events)
        if options["json"]:
            self.stdout.write(json.dumps(found, ensure_ascii=False))
        else:
            shown = printing.walkthrough(run_id, chosen, events)
            self.stdout.write(printing.rendered(shown), ending="")
        sys.exit(0 if found["as_predicted"] else 1)


async def _play(chosen: Configuration) -> tuple[str, list[Event]]:
    run = await story.play(chosen)
    return run.id, await runs.read(run.id)
