"""A run as data: what ``walkthrough --json`` and each cell of the matrix print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.events import Event, Kind
from orchestrator.measure import DECIDING_TURN, story_of
from orchestrator.recall import lookups
from orchestrator.release import latest_attempt
from orchestrator.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration


def report(
    run_id: str, configuration: Configuration, events: Sequence[Event]
) -> dict[str, Any]:
    """Return a run's verdict with its configuration, lookup and duration.

    ``duration_ms`` is the time both turns took, from the request to the end of the
    stream. ``lookup`` is what turn 2 asked for first; None before.
    """
    return {
        "run": run_id,
        "config": configuration.as_dict(),
        **verdict(events, configuration).as_dict(),
        "lookup": _lookup(story_of(events)),
        "duration_ms": sum(_durations(events)),
    }


def _lookup(story: Sequence[Event]) -> dict[str, Any] | None:
    for lookup in lookups(story):
        if lookup.turn == DECIDING_TURN:
            return {
                "asked_for": lookup.asked_for,
                "found": lookup.found,
                "stored_as": lookup.stored_as,
            }
    return None


def _durations(events: Sequence[Event]) -> list[int]:
    return [
        event.data["duration_ms"]
        for turn in range(1, DECIDING_TURN + 1)
        for event in latest_attempt(events, turn)
        if event.kind is Kind.TURN_ENDED
    ]
