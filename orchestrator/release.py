"""What left the building, put together from the frames that arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.events import QUESTION, Event, Kind
from orchestrator.scene import Artifact, Released

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def latest_attempt(events: Iterable[Event], turn: int) -> tuple[Event, ...]:
    """Return a turn's events since its message was last sent; a retry starts anew."""
    attempt: list[Event] = []
    for event in events:
        if event.turn == turn:
            if event.kind is Kind.MESSAGE_SENT:
                attempt.clear()
            attempt.append(event)
    return tuple(attempt)


def latest_work(events: Iterable[Event], turn: int) -> tuple[Event, ...]:
    """Return a turn's events since the agent last took it up.

    A retry whose first send had arrived joins the work that began with it: what the
    agent looked up and saw belongs to the send before.
    """
    work: list[Event] = []
    joining: list[Event] = []
    for event in events:
        if event.turn != turn:
            continue
        if event.kind is Kind.MESSAGE_SENT:
            work, joining = work + joining, []
        elif event.kind is Kind.SESSION_LOOKED_UP and work:
            work = []
        joining.append(event)
    return tuple(work + joining)


def artifact_after(held: Artifact | None, event: Event) -> Artifact:
    """Fold one artifact frame onto what is held of it: append, or replace."""
    data = event.data
    texts, parts = tuple(data["texts"]), tuple(data["data"])
    if data["append"] and held is not None:
        texts, parts = held.texts + texts, held.data + parts
    return Artifact(data["artifact_id"], texts, parts, data["last_chunk"])


def released(events: Sequence[Event], turn: int) -> Released:
    """Measure what one turn released, from the frames of its latest attempt.

    The final artifact is the last to arrive, unless the turn ends in a question:
    then there is none, and every text in an artifact is intermediate.
    """
    artifacts: dict[str, Artifact] = {}
    texts: list[str] = []
    size, asks = 0, False
    for event in latest_attempt(events, turn):
        data = event.data
        if event.kind is not Kind.EVENT_RECEIVED:
            continue
        if data["type"] == "artifact":
            artifact_id = data["artifact_id"]
            held = artifacts.pop(artifact_id, None)
            artifacts[artifact_id] = artifact_after(held, event)
            size += data["size"]
        elif data["state"] == QUESTION:
            asks = True
        elif data["text"]:
            texts.append(data["text"])
            size += data["size"]
    earlier = list(artifacts.values())[: None if asks else -1]
    texts.extend(text for artifact in earlier for text in artifact.texts)
    return Released(turn, tuple(artifacts.values()), tuple(texts), size)
