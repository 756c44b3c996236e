"""Recordings put into the database as the processes would have."""

from __future__ import annotations

from orchestrator import runs, visitors
from orchestrator.config import Configuration
from orchestrator.events import Kind

OWNER = "k" * 32


async def store(events=(), configuration=None, session=OWNER, **run):
    """Start a run for a browser session and record these events; return it."""
    started_by = visitors.digest(session) if session else ""
    chosen = configuration or Configuration()
    made = await runs.create(chosen, started_by=started_by, **run)
    await record(made, events)
    return await runs.get(made.id)


async def record(run, events):
    """Append events to a run; each message claims its turn first."""
    for event in events:
        if event.kind is Kind.MESSAGE_SENT:
            assert await runs.claim_turn(run.id, event.turn)
        await runs.append(run.id, event.part, event.kind, event.data)
