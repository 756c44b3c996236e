"""The figures of a run's first two turns, read from its events alone: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.events import ANSWER, QUESTION, Event, Kind
from orchestrator.fold import context_id, replicas
from orchestrator.predict import Outcome
from orchestrator.recall import held_stores, turns_sent
from orchestrator.release import latest_attempt, latest_work, released
from orchestrator.scene import part

if TYPE_CHECKING:
    from collections.abc import Sequence

DECIDING_TURN = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, before it is judged; see ``Verdict`` for the figures.

    Args:
        ended: whether turn 2 is over and the stores were read after it.
        context: the conversation.
        embedded_router: whether the router told whom it chose; another one does not.
        replicas: how many there are, as far as told.
    """

    ended: bool
    outcome: Outcome | None
    path: tuple[str, ...]
    events_seen: tuple[int, ...]
    sessions: int | None
    task_states: tuple[str, ...]
    asked_back: int
    context: str
    embedded_router: bool
    replicas: int

    @property
    def moved(self) -> bool | None:
        """Whether another replica answered turn 2; None while that is not known."""
        return len(set(self.path)) > 1 if len(self.path) > 1 else None


def measure(events: Sequence[Event]) -> Measured:
    """Measure turns 1 and 2; a turn that was sent again counts as sent last."""
    story = story_of(events)
    attempts = [latest_attempt(story, turn) for turn in turns_sent(story)]
    answered_by = [_replica(attempt) for attempt in attempts]
    seen = [_first_seen(latest_work(story, turn)) for turn in turns_sent(story)]
    states = tuple(state for state in map(_last_state, attempts) if state)
    deciding = latest_attempt(story, DECIDING_TURN)
    ended = _has_ended(deciding)
    return Measured(
        ended=ended,
        outcome=_outcome(story, _last_state(deciding)) if ended else None,
        path=tuple(part(name).letter or name for name in answered_by if name),
        events_seen=tuple(count for count in seen if count is not None),
        sessions=_sessions(story),
        task_states=states,
        asked_back=states.count(QUESTION),
        context=context_id(story),
        embedded_router=any(event.kind is Kind.REPLICA_CHOSEN for event in story),
        replicas=len(replicas(story)) or 2,
    )


def story_of(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events of the turns that a verdict looks at."""
    return tuple(event for event in events if event.turn <= DECIDING_TURN)


def _has_ended(attempt: Sequence[Event]) -> bool:
    """Tell whether a turn is over and the stores were read after it."""
    kinds = {event.kind for event in attempt}
    return {Kind.TURN_ENDED, Kind.LEDGER_READ} <= kinds


def _outcome(story: Sequence[Event], state: str) -> Outcome | None:
    if state == QUESTION:
        return Outcome.ASKS
    answered = state == ANSWER and released(story, DECIDING_TURN).artifacts
    return Outcome.ANSWERS if answered else None


def _replica(attempt: Sequence[Event]) -> str:
    """Return who answered a turn, or whom the router chose while that is open."""
    names = [e.data["replica"] for e in attempt if e.kind is Kind.EVENT_RECEIVED]
    chosen = [e.data["replica"] for e in attempt if e.kind is Kind.REPLICA_CHOSEN]
    return next((name for name in [*names, *reversed(chosen)] if name), "")


def _first_seen(work: Sequence[Event]) -> int | None:
    calls = [e.data["events_seen"] for e in work if e.kind is Kind.MODEL_CALLED]
    return calls[0] if calls else None


def _last_state(attempt: Sequence[Event]) -> str:
    states = [e.data["state"] for e in attempt if e.kind is Kind.EVENT_RECEIVED]
    return next((state for state in reversed(states) if state), "")


def _sessions(story: Sequence[Event]) -> int | None:
    """Count the sessions of the conversation's user, as the ledger found them."""
    stores = held_stores(story)
    if stores is None:
        return None
    user = f"A2A_USER_{context_id(story)}"
    return sum(held.user == user for store in stores for held in store.sessions)
