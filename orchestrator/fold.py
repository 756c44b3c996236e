"""From the events of a run to what a page shows: a pure fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.conversation import bubbles, pending_question
from orchestrator.events import Event, Kind
from orchestrator.recall import held_stores, lookups, seen, turns_sent
from orchestrator.release import released
from orchestrator.rows import failure_phrase, rows
from orchestrator.scene import Failure, Progress, Scene, Step, Waiting, part
from orchestrator.topology import topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration
    from orchestrator.scene import Row

LAST_TURN = 3
LAST_STEP = 5
_ENDS = {Kind.TURN_ENDED, Kind.STEP_FAILED}
_USUAL_REPLICAS = frozenset({"replica-a", "replica-b"})


def fold(events: Sequence[Event], configuration: Configuration) -> Scene:
    """Show events 1…k of a run; the same events always give the same scene.

    Args:
        events: any prefix of a run's events, in order.
        configuration: the switches the run was started with.
    """
    listed = rows(events)
    ledger = held_stores(events)
    waiting = _waiting(events)
    failure = _failure(events)
    step = listed[-1].step if listed else 0
    return Scene(
        configuration=configuration,
        cursor=events[-1].seq if events else 0,
        context_id=context_id(events),
        step=step,
        steps=_steps(listed, step),
        rows=listed,
        bubbles=bubbles(events),
        topology=topology(listed, ledger, replicas(events) or _USUAL_REPLICAS),
        ledger=ledger,
        lookups=lookups(events),
        seen=seen(events),
        released=tuple(released(events, turn) for turn in turns_sent(events)),
        tenant=tenant(events),
        pending=pending_question(events),
        failure=failure,
        waiting=waiting,
        next_turn=_next_turn(events, waiting, failure),
    )


def tenant(events: Sequence[Event]) -> str:
    """Return the tenant a filter stamped last, empty before."""
    stamped = [e.data["tenant"] for e in events if e.kind is Kind.CALLER_VERIFIED]
    return stamped[-1] if stamped else ""


def context_id(events: Sequence[Event]) -> str:
    """Return the conversation the last message was sent in, empty before."""
    sent = [e.data["context_id"] for e in events if e.kind is Kind.MESSAGE_SENT]
    return sent[-1] if sent else ""


def replicas(events: Sequence[Event]) -> frozenset[str]:
    """Return the replicas that the ledger named, or the router weighed."""
    names: set[str] = set()
    for event in events:
        if event.kind is Kind.LEDGER_READ:
            names |= {store["replica"] for store in event.data["stores"]}
            names |= {*event.data["unread"]}
        elif event.kind is Kind.REPLICA_CHOSEN:
            names |= {*event.data["scores"]}
    return frozenset(names - {""})


def _steps(listed: Sequence[Row], current: int) -> tuple[Step, ...]:
    steps = []
    last_seq = 0
    for number in range(LAST_STEP + 1):
        own = [row.seq for row in listed if row.step == number]
        last_seq = own[-1] if own else last_seq
        progress = Progress.DONE if number < current else Progress.AHEAD
        if number == current:
            progress = Progress.CURRENT
        steps.append(Step(number, progress, len(own), last_seq))
    return tuple(steps)


def _failure(events: Sequence[Event]) -> Failure | None:
    for event in reversed(events):
        if event.kind is Kind.MESSAGE_SENT:
            return None
        if event.kind is Kind.STEP_FAILED:
            return Failure(event.turn, failure_phrase(event), event.data["error_id"])
    return None


def _waiting(events: Sequence[Event]) -> Waiting | None:
    replica = None
    for event in reversed(events):
        if event.kind in _ENDS:
            return None
        if event.kind is Kind.REPLICA_CHOSEN and replica is None:
            replica = part(event.data["replica"])
        if event.kind is Kind.MESSAGE_SENT:
            return Waiting(event.turn, replica, event.at)
    return None


def _next_turn(
    events: Sequence[Event], waiting: Waiting | None, failure: Failure | None
) -> int | None:
    if waiting is not None:
        return None
    if failure is not None:
        return failure.turn
    following = max(turns_sent(events), default=0) + 1
    return following if following <= LAST_TURN else None
