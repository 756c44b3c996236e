"""The conversation as bubbles: what was asked, what came back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.events import ANSWER, FAILED, QUESTION, Event, Kind
from orchestrator.release import artifact_after
from orchestrator.scene import Artifact, Bubble, Question, part

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEANT = {QUESTION: "question", **dict.fromkeys(FAILED, "failure")}


class _Transcript:
    """Bubbles in the order they began; artifact frames grow theirs in place."""

    def __init__(self) -> None:
        self.bubbles: list[Bubble] = []
        self.artifacts: dict[str, tuple[int, Artifact]] = {}

    def sent(self, event: Event) -> None:
        text = event.data["text"]
        self.bubbles.append(
            Bubble(
                event.seq, event.seq, event.turn, "orchestrator", None, text, (), "sent"
            )
        )

    def received(self, event: Event) -> None:
        self._deliver(event)
        data = event.data
        if data["type"] == "artifact":
            self._artifact(event)
        elif data["text"]:
            self._agent(event, data["text"], _MEANT.get(data["state"], "intermediate"))
        if data["state"] == ANSWER:
            self._answered(event)

    def _answered(self, event: Event) -> None:
        """Call the last artifact of a completed turn its answer."""
        own = [
            place
            for place, _ in self.artifacts.values()
            if self.bubbles[place].turn == event.turn
        ]
        if own:
            last = self.bubbles[own[-1]]
            self.bubbles[own[-1]] = replace(last, seq=event.seq, state="answer")

    def _deliver(self, event: Event) -> None:
        for place, bubble in enumerate(self.bubbles):
            if bubble.turn == event.turn and bubble.state == "sent":
                self.bubbles[place] = replace(bubble, seq=event.seq, state="delivered")

    def _agent(self, event: Event, text: str, state: str) -> None:
        speaker = event.data["replica"]
        replica = part(speaker) if speaker else None
        self.bubbles.append(
            Bubble(event.seq, event.seq, event.turn, "agent", replica, text, (), state)
        )

    def _artifact(self, event: Event) -> None:
        artifact_id = event.data["artifact_id"]
        place, held = self.artifacts.pop(artifact_id, (len(self.bubbles), None))
        artifact = artifact_after(held, event)
        if held is None:
            self._agent(event, "", "intermediate")
        self.artifacts[artifact_id] = place, artifact
        self.bubbles[place] = replace(
            self.bubbles[place],
            seq=event.seq,
            text="\n".join(artifact.texts)
            if not event.data["append"]
            else "".join(artifact.texts),
            data=artifact.data,
        )


def bubbles(events: Sequence[Event]) -> tuple[Bubble, ...]:
    """Return the conversation, oldest first."""
    transcript = _Transcript()
    steps = {
        Kind.MESSAGE_SENT: transcript.sent,
        Kind.EVENT_RECEIVED: transcript.received,
    }
    for event in events:
        if event.kind in steps:
            steps[event.kind](event)
    return tuple(transcript.bubbles)


def pending_question(events: Sequence[Event]) -> Question | None:
    """Return the question the agent waits on; an answer that failed leaves it open."""
    failed = 0
    for event in reversed(events):
        if event.kind is Kind.STEP_FAILED:
            failed = event.turn
        if event.turn == failed:
            continue
        if event.kind is Kind.MESSAGE_SENT:
            return None
        data = event.data
        if event.kind is Kind.EVENT_RECEIVED and data["state"] == QUESTION:
            return Question(
                event.turn, data["task_id"], data["context_id"], data["text"]
            )
    return None
