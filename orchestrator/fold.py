"""From the events of a run to what a page shows: a pure fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.conversation import bubbles, pending_question
from orchestrator.events import Event, Kind
from orchestrator.release import latest_attempt, released
from orchestrator.rows import failure_phrase, rows
from orchestrator.scene import (
    Edge,
    Failure,
    HeldSession,
    HeldStore,
    Lookup,
    Node,
    Progress,
    Row,
    Scene,
    Seen,
    Step,
    Topology,
    Waiting,
    part,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration

LAST_TURN = 3
_ENDS = {Kind.TURN_ENDED, Kind.STEP_FAILED}


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
    return Scene(
        configuration=configuration,
        cursor=events[-1].seq if events else 0,
        context_id=_context_id(events),
        step=listed[-1].step if listed else 0,
        steps=_steps(listed),
        rows=listed,
        bubbles=bubbles(events),
        topology=_topology(listed, ledger),
        ledger=ledger,
        lookups=lookups(events),
        seen=_seen(events),
        released=tuple(released(events, turn) for turn in turns_sent(events)),
        tenant=tenant(events),
        pending=pending_question(events),
        failure=failure,
        waiting=waiting,
        next_turn=_next_turn(events, waiting, failure),
    )


def turns_sent(events: Sequence[Event]) -> list[int]:
    """Return the turns whose message was sent, each once, in order."""
    return sorted({event.turn for event in events if event.kind is Kind.MESSAGE_SENT})


def tenant(events: Sequence[Event]) -> str:
    """Return the tenant a filter stamped last, empty before."""
    stamped = [e.data["tenant"] for e in events if e.kind is Kind.CALLER_VERIFIED]
    return stamped[-1] if stamped else ""


def _context_id(events: Sequence[Event]) -> str:
    sent = [e.data["context_id"] for e in events if e.kind is Kind.MESSAGE_SENT]
    return sent[-1] if sent else ""


def _steps(listed: Sequence[Row]) -> tuple[Step, ...]:
    current = listed[-1].step if listed else 0
    steps = []
    last_seq = 0
    for number in range(6):
        own = [row.seq for row in listed if row.step == number]
        last_seq = own[-1] if own else last_seq
        progress = (
            Progress.CURRENT
            if number == current
            else Progress.DONE
            if number < current
            else Progress.AHEAD
        )
        steps.append(Step(number, progress, len(own), last_seq))
    return tuple(steps)


def held_stores(events: Sequence[Event]) -> tuple[HeldStore, ...] | None:
    """Return what the stores hold by the last reading; None before the first."""
    readings = [event.data for event in events if event.kind is Kind.LEDGER_READ]
    if not readings:
        return None
    read = [
        HeldStore(
            store["store"],
            part(store["replica"]) if store.get("replica") else None,
            tuple(
                HeldSession(held["user"], held["session_id"], held["events"])
                for held in store["sessions"]
            ),
            True,
        )
        for store in readings[-1]["stores"]
    ]
    unread = [
        HeldStore("memory", part(name), (), False)
        for name in readings[-1].get("unread", [])
    ]
    return tuple(read + unread)


def _lookup(attempt: Sequence[Event]) -> Lookup | None:
    """Return a turn's first lookup, and the session the turn went on with."""
    first = next((e for e in attempt if e.kind is Kind.SESSION_LOOKED_UP), None)
    if first is None:
        return None
    data = first.data
    created = [e.data["session_id"] for e in attempt if e.kind is Kind.SESSION_CREATED]
    found = data["asked_for"] if data["found"] else ""
    return Lookup(
        first.turn,
        part(first.part),
        data["store"],
        data["asked_for"],
        data["found"],
        data["events"],
        created[-1] if created else found,
    )


def lookups(events: Sequence[Event]) -> tuple[Lookup, ...]:
    """Return what each turn asked its store for first."""
    found = [_lookup(latest_attempt(events, turn)) for turn in turns_sent(events)]
    return tuple(lookup for lookup in found if lookup is not None)


def _seen(events: Sequence[Event]) -> Seen | None:
    """Return the latest model call, and what other sessions would have added."""
    calls = [event for event in events if event.kind is Kind.MODEL_CALLED]
    if not calls:
        return None
    shared = {e.turn for e in events if e.data.get("store") == "shared"}
    by_session: dict[tuple[str, str], tuple[str, ...]] = {}
    for call in calls:
        place = "shared" if call.turn in shared else call.part
        by_session[place, call.data["session_id"]] = tuple(call.data["seen"])
    here = calls[-1]
    place = "shared" if here.turn in shared else here.part
    lines = by_session.pop((place, here.data["session_id"]))
    return Seen(
        here.turn,
        part(here.part),
        here.data["call"],
        here.data["session_id"],
        here.data["events_seen"],
        lines,
        tuple(line for others in by_session.values() for line in others),
    )


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


def _topology(listed: Sequence[Row], ledger: tuple[HeldStore, ...] | None) -> Topology:
    """Light the current event's parts; replicas known so far are drawn."""
    lit = {listed[-1].source, listed[-1].target} if listed else set()
    held = {
        store.replica.name if store.replica else "store": tuple(
            session.session_id for session in store.sessions
        )
        for store in ledger or ()
    }
    known = {name for row in listed for name in (row.source, row.target)} | {*held}
    replicas = sorted(
        {name for name in known if name.startswith("replica-")}
        | {"replica-a", "replica-b"}
    )
    names = ["orchestrator", "filter", "router", *replicas, "store"]
    pairs = [("orchestrator", "filter"), ("filter", "router")]
    pairs += [("router", name) for name in replicas]
    pairs += [(name, "store") for name in replicas]
    return Topology(
        tuple(_node(name, name in lit, held.get(name, ())) for name in names),
        tuple(Edge(*pair, _travels(pair, lit, names)) for pair in pairs),
    )


def _node(name: str, lit: bool, sessions: tuple[str, ...]) -> Node:
    drawn = part(name)
    return Node(name, drawn.letter, drawn.shape, lit, sessions)


def _travels(pair: tuple[str, str], lit: set[str], names: list[str]) -> bool:
    """Tell whether the current event's way, part by part, uses this line."""
    way = [
        name
        for name in names
        if name in lit
        or (
            len(lit) == 2
            and name in {"filter", "router"}
            and min(names.index(x) for x in lit)
            < names.index(name)
            < max(names.index(x) for x in lit)
            and "store" not in lit
        )
    ]
    return pair[0] in way and pair[1] in way
