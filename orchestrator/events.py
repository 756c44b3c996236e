"""The numbered events of a run: what a page, a verdict and an export fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

# States in which a task rests: its stream ends here (A2A 1.0, section 4.1.3).
QUESTION = "TASK_STATE_INPUT_REQUIRED"
ANSWER = "TASK_STATE_COMPLETED"
FAILED = frozenset({"TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})


class Kind(StrEnum):
    """What happened. The comment names the keys of ``data``."""

    # the orchestrator's own doings
    MESSAGE_SENT = "message-sent"  # text context_id task_id message_id request
    EVENT_RECEIVED = "event-received"  # type task_id context_id state text texts
    #           artifact_id append last_chunk data size replica response
    TURN_ENDED = "turn-ended"  # state replica task_id context_id duration_ms
    LEDGER_READ = "ledger-read"  # stores: [{store replica sessions}] unread: [names]
    STEP_FAILED = "step-failed"  # reason sentence error_id
    # facts of the billing side, as its processes announced them
    CALLER_VERIFIED = "caller-verified"  # tenant metadata_before metadata_after
    REPLICA_CHOSEN = "replica-chosen"  # replica reason affinity scores
    SESSION_LOOKED_UP = "session-looked-up"  # store asked_for found events by
    SESSION_CREATED = "session-created"  # store session_id by
    MODEL_CALLED = "model-called"  # call session_id events_seen seen
    TOOL_CALLED = "tool-called"  # tool arguments tenant
    TASK_STATE_CHANGED = "task-state-changed"  # state text
    ARTIFACT_RELEASED = "artifact-released"  # artifact_id append last_chunk texts size
    CANCEL_HEARD = "cancel-heard"  # through


@dataclass(frozen=True, slots=True)
class Event:
    """Event ``seq`` (from 1) of a run.

    Args:
        seq: its number, without gaps.
        at: when it was stored, aware.
        turn: 1 or 2 (or 3), 0 before the first message.
        part: ``orchestrator``, ``router`` or a replica's name.
        kind: what happened.
        data: the keys that ``Kind`` lists; JSON values only.
    """

    seq: int
    at: datetime
    turn: int
    part: str
    kind: Kind
    data: dict[str, Any] = field(default_factory=dict)
