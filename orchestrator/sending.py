"""Turns this process is sending: a page asks for one, and is answered at once."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import story
from orchestrator.errors import StepFailed
from orchestrator.models import TurnState

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.models import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sending:
    """A turn that was asked for when the run had last advanced at ``asked_at``."""

    turn: int
    asked_at: datetime
    task: asyncio.Task[bool]


_sending: dict[str, _Sending] = {}


def start(run: Run, turn: int) -> None:
    """Send a turn in the background, unless this process is at it already.

    Whether it may be sent (not twice, not out of order) is decided by the claim
    that ``story.send_turn`` makes in the database.
    """
    if run.id in _sending:
        return
    task = asyncio.create_task(story.send_turn(run, turn), name=f"{run.id} {turn}")
    _sending[run.id] = _Sending(turn, run.active_at, task)
    task.add_done_callback(lambda done: _ended(run.id, done))


def _ended(run_id: str, task: asyncio.Task[bool]) -> None:
    del _sending[run_id]
    if task.cancelled():
        return
    error = task.exception()
    # A failed step is recorded and logged where it happened.
    if error is not None and not isinstance(error, StepFailed):
        logger.error("Sending for %s stopped", run_id, exc_info=error)


def turn_on_its_way(run: Run) -> int | None:
    """Return the turn being sent, here or by another process; None when none is."""
    if run.turn_state == TurnState.SENDING:
        return run.turns_sent
    asked = _sending.get(run.id)
    # Asked for, and nothing has happened to the run since: the claim is to come.
    return asked.turn if asked and asked.asked_at == run.active_at else None
