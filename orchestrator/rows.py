"""The event list: one plain sentence for every event."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from orchestrator.events import ANSWER, QUESTION, Event, Kind
from orchestrator.scene import Row, part
from orchestrator.sentences import ENGLISH, Phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STEP_OF_KIND = {
    Kind.MESSAGE_SENT: 1,
    Kind.STEP_FAILED: 1,
    Kind.TOOL_CALLED: 3,
    Kind.MODEL_CALLED: 3,
}
_THIRD_STEP_STATES = {QUESTION, ANSWER}


def state_name(state: str) -> Phrase | str:
    """Return a protocol state in words, the state itself if there are none for it."""
    key = f"state.{state.removeprefix('TASK_STATE_')}"
    return Phrase(key) if key in ENGLISH else state


def _own_step(event: Event) -> int:
    if event.turn != 1:
        return {0: 0, 2: 4}.get(event.turn, 5)
    if event.kind is Kind.CALLER_VERIFIED:
        return 1 if event.part == "router" else 2
    if event.data.get("state") in _THIRD_STEP_STATES:
        return 3
    return _STEP_OF_KIND.get(event.kind, 2)


def steps_of(events: Iterable[Event]) -> list[int]:
    """Return the step (0-5) of each event; it never falls from one to the next.

    Replicas and the client commit at the same time, so a frame may be recorded
    after the next step began; it then belongs to that step.
    """
    return list(accumulate(map(_own_step, events), max))


def _letter(name: str) -> str:
    return part(name).letter or name


def _counted(key: str, count: int) -> str:
    return f"{key}.{'one' if count == 1 else 'other'}"


def _message_sent(event: Event) -> Phrase:
    data = event.data
    return Phrase(
        "row.message-sent", {"text": data["text"], "context": data["context_id"]}
    )


def _received(event: Event) -> Phrase:
    data, key = event.data, f"row.{event.kind}"
    if data["type"] == "artifact":
        text = " ".join(data["texts"])
        return (
            Phrase(f"{key}.artifact", {"text": text}) if text else Phrase(f"{key}.data")
        )
    if data["text"]:
        asks = data["state"] == QUESTION
        kind = "question" if asks else "text"
        return Phrase(f"{key}.{kind}", {"text": data["text"]})
    return Phrase(f"{key}.{data['type']}", {"state": state_name(data["state"])})


def _ledger_read(event: Event) -> Phrase:
    count = sum(len(store["sessions"]) for store in event.data["stores"])
    return Phrase(_counted("row.ledger-read", count), {"count": count})


def _turn_ended(event: Event) -> Phrase:
    data = event.data
    return Phrase(
        "row.turn-ended",
        {
            "turn": event.turn,
            "state": state_name(data["state"]),
            "milliseconds": data["duration_ms"],
        },
    )


def failure_phrase(event: Event) -> Phrase:
    """Return the safe sentence of a failed step."""
    reason = event.data["reason"]
    return Phrase(reason if reason in ENGLISH else "failed.unexpected")


def _step_failed(event: Event) -> Phrase:
    data = event.data
    return Phrase(
        "row.step-failed",
        {"sentence": failure_phrase(event), "error_id": data["error_id"]},
    )


def _caller_verified(event: Event) -> Phrase:
    return Phrase("row.caller-verified", {"tenant": event.data["tenant"]})


def _replica_chosen(event: Event) -> Phrase:
    data, key = event.data, f"row.{event.kind}"
    letter = _letter(data["replica"])
    if data["reason"] in {"affinity", "turn"}:
        return Phrase(f"{key}.{data['reason']}", {"letter": letter})
    owner = _letter(max(data["scores"], key=data["scores"].get, default=""))
    if data["affinity"] and owner not in {"", letter}:
        return Phrase(f"{key}.down", {"letter": letter, "owner": owner})
    return Phrase(f"{key}.other", {"letter": letter, "reason": data["reason"]})


def _looked_up(event: Event) -> Phrase:
    data = event.data
    values = {"asked_for": data["asked_for"], "events": data["events"]}
    key = f"row.{event.kind}.{data['by']}"
    if not data["found"]:
        return Phrase(f"{key}.missed", values)
    counted = data["events"] is not None
    return Phrase(_counted(key, data["events"]) if counted else f"{key}.found", values)


def _created(event: Event) -> Phrase:
    data = event.data
    return Phrase(f"row.{event.kind}.{data['by']}", {"session": data["session_id"]})


def _model_called(event: Event) -> Phrase:
    data = event.data
    return Phrase(
        _counted("row.model-called", data["events_seen"]),
        {"call": data["call"], "events": data["events_seen"]},
    )


def _tool_called(event: Event) -> Phrase:
    data = event.data
    key = "row.tool-called" if data["tenant"] else "row.tool-called.nobody"
    return Phrase(key, {"tool": data["tool"], "tenant": data["tenant"]})


def _state_changed(event: Event) -> Phrase:
    return Phrase("row.task-state-changed", {"state": state_name(event.data["state"])})


def _artifact_released(event: Event) -> Phrase:
    return Phrase("row.artifact-released", {"size": event.data["size"]})


def _cancel_heard(event: Event) -> Phrase:
    return Phrase(f"row.cancel-heard.{event.data['through']}")


_PHRASES: dict[Kind, Callable[[Event], Phrase]] = {
    Kind.MESSAGE_SENT: _message_sent,
    Kind.EVENT_RECEIVED: _received,
    Kind.LEDGER_READ: _ledger_read,
    Kind.TURN_ENDED: _turn_ended,
    Kind.STEP_FAILED: _step_failed,
    Kind.CALLER_VERIFIED: _caller_verified,
    Kind.REPLICA_CHOSEN: _replica_chosen,
    Kind.SESSION_LOOKED_UP: _looked_up,
    Kind.SESSION_CREATED: _created,
    Kind.MODEL_CALLED: _model_called,
    Kind.TOOL_CALLED: _tool_called,
    Kind.TASK_STATE_CHANGED: _state_changed,
    Kind.ARTIFACT_RELEASED: _artifact_released,
    Kind.CANCEL_HEARD: _cancel_heard,
}
_WIRE = {
    Kind.MESSAGE_SENT: "SendStreamingMessage",
    Kind.CALLER_VERIFIED: "Authorization",
    Kind.REPLICA_CHOSEN: "X-Replica",
    Kind.ARTIFACT_RELEASED: "artifactUpdate",
    Kind.CANCEL_HEARD: "CancelTask",
}


def _wire_name(event: Event) -> str:
    if event.data.get("type") == "artifact":
        return "artifactUpdate"
    return _WIRE.get(event.kind) or str(event.data.get("state") or "")


def _ends(event: Event) -> tuple[str, str]:
    """Name the nodes an event travels between."""
    here = event.part
    if event.kind is Kind.MESSAGE_SENT:
        return here, "filter"
    if event.kind is Kind.EVENT_RECEIVED:
        return event.data["replica"] or "router", here
    if event.kind is Kind.CALLER_VERIFIED:
        return ("filter", "router") if here == "router" else (here, here)
    if event.kind is Kind.REPLICA_CHOSEN:
        return here, event.data["replica"]
    if event.kind in {Kind.SESSION_LOOKED_UP, Kind.SESSION_CREATED}:
        return here, "store" if event.data["store"] == "shared" else here
    return here, here


def rows(events: Iterable[Event]) -> tuple[Row, ...]:
    """Return the event list; a row never changes when more events follow."""
    events = tuple(events)
    return tuple(
        Row(
            event.seq,
            event.at,
            event.turn,
            step,
            event.kind,
            part(event.part),
            *_ends(event),
            _PHRASES[event.kind](event),
            _wire_name(event),
        )
        for event, step in zip(events, steps_of(events), strict=True)
    )
