"""Stores the facts of recorded runs, in whichever process they are announced."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from billing_agent import facts
from orchestrator import runs
from orchestrator.errors import RunUnknown
from orchestrator.events import Kind

SUBJECT_PREFIX = "orchestrator/"


def kind_of(fact: type[facts.Fact]) -> Kind:
    """Return the run event that a fact becomes: its name, in kebab case."""
    return Kind(re.sub(r"(?<!^)(?=[A-Z])", "-", fact.__name__).lower())


async def record(fact: facts.Fact, source: facts.Origin, **_: Any) -> None:
    """Append a fact to the run its subject names; other callers leave no trace.

    The subject prefix is the orchestrator's own: no other client gets a token for
    it. A run that has been deleted meanwhile is not brought back.
    """
    if not source.subject.startswith(SUBJECT_PREFIX):
        return
    run_id = source.subject.removeprefix(SUBJECT_PREFIX)
    data = {**asdict(fact), "context_id": source.context_id, "task_id": source.task_id}
    with suppress(RunUnknown):
        await runs.append(run_id, source.part, kind_of(type(fact)), data)


def connect() -> None:
    """Begin to record in this process."""
    facts.announced.connect(record, dispatch_uid="web.demo.recorder")
