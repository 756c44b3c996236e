"""What the stores hold, what was asked of them, and what the agent saw: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.events import Event, Kind
from orchestrator.release import latest_work
from orchestrator.scene import HeldSession, HeldStore, Lookup, Seen, part

if TYPE_CHECKING:
    from collections.abc import Sequence


def turns_sent(events: Sequence[Event]) -> list[int]:
    """Return the turns whose message was sent, each once, in order."""
    return sorted({event.turn for event in events if event.kind is Kind.MESSAGE_SENT})


def held_stores(events: Sequence[Event]) -> tuple[HeldStore, ...] | None:
    """Return what the stores hold by the last reading; None before the first."""
    readings = [event.data for event in events if event.kind is Kind.LEDGER_READ]
    if not readings:
        return None
    read = [
        HeldStore(
            store["store"],
            part(store["replica"]) if store["replica"] else None,
            tuple(
                HeldSession(held["user"], held["session_id"], held["events"])
                for held in store["sessions"]
            ),
            True,
        )
        for store in readings[-1]["stores"]
    ]
    unread = [
        HeldStore("memory", part(name), (), False) for name in readings[-1]["unread"]
    ]
    return tuple(read + unread)


def lookups(events: Sequence[Event]) -> tuple[Lookup, ...]:
    """Return what each turn asked its store for first.

    The continuity fix only asks whether there is a session: what it found is told
    by the lookup that follows and reads it.
    """
    found = [_lookup(latest_work(events, turn)) for turn in turns_sent(events)]
    return tuple(lookup for lookup in found if lookup is not None)


def _lookup(work: Sequence[Event]) -> Lookup | None:
    asked = [e for e in work if e.kind is Kind.SESSION_LOOKED_UP]
    told = (e for e in asked if not e.data["found"] or e.data["events"] is not None)
    first = next(told, None)
    if first is None:
        return None
    data = first.data
    created = [e.data["session_id"] for e in work if e.kind is Kind.SESSION_CREATED]
    found = data["asked_for"] if data["found"] else ""
    return Lookup(
        first.turn,
        part(first.part),
        data["store"],
        data["asked_for"],
        data["found"],
        data["events"] or 0,
        created[-1] if created else found,
    )


def seen(events: Sequence[Event]) -> Seen | None:
    """Return the latest model call, and what other sessions would have added."""
    calls = [event for event in events if event.kind is Kind.MODEL_CALLED]
    if not calls:
        return None
    here = calls[-1]
    known = _known(events)
    del known[_session(here, events)]
    return Seen(
        here.turn,
        part(here.part),
        here.data["call"],
        here.data["session_id"],
        here.data["events_seen"],
        tuple(here.data["seen"]),
        tuple(line for lines in known.values() for line in lines),
    )


def _known(events: Sequence[Event]) -> dict[tuple[str, str], list[str]]:
    """Return what each session held at its last model call, and the tools called."""
    known: dict[tuple[str, str], list[str]] = {}
    working: dict[tuple[int, str], list[str]] = {}
    for event in events:
        worker = event.turn, event.part
        if event.kind is Kind.MODEL_CALLED:
            working[worker] = known[_session(event, events)] = [*event.data["seen"]]
        elif event.kind is Kind.TOOL_CALLED and worker in working:
            working[worker].append(f"calls {event.data['tool']}")
    return known


def _session(call: Event, events: Sequence[Event]) -> tuple[str, str]:
    """Return the store of a model call's session, and its id there."""
    shared = {event.turn for event in events if event.data.get("store") == "shared"}
    place = "shared" if call.turn in shared else call.part
    return place, call.data["session_id"]
