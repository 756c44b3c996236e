"""Output modes: which artifact updates an ADK event becomes, and when they leave."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import Any

from a2a.types import Artifact, TaskArtifactUpdateEvent
from google.adk.events.event import Event
from google.genai import types

from billing_agent.executor.config import OutputMode
from billing_agent.executor.parts import is_answer, to_a2a


def _metadata(event: Event) -> dict[str, Any]:
    """Only plain text of ``custom_metadata`` leaves; the rest is the server's own."""
    return {
        key: value
        for key, value in (event.custom_metadata or {}).items()
        if isinstance(value, str)
    }


class Output(ABC):
    """Turns one run's ADK events into artifact updates.

    Args:
        task_id: the task the updates belong to.
        context_id: its conversation.
    """

    def __init__(self, task_id: str, context_id: str) -> None:
        self._task_id = task_id
        self._context_id = context_id

    @abstractmethod
    def convert(self, event: Event) -> TaskArtifactUpdateEvent | None:
        """Return what would leave for this event, ``None`` for nothing."""

    @abstractmethod
    def keep(
        self, event: Event, update: TaskArtifactUpdateEvent | None
    ) -> TaskArtifactUpdateEvent | None:
        """Take the hook's version of an event's update; return what leaves now."""

    def end(self) -> TaskArtifactUpdateEvent | None:
        """Return what leaves at the end of a run that did not fail."""
        return None

    def _update(
        self, artifact_id: str, event: Event, parts: list[types.Part]
    ) -> TaskArtifactUpdateEvent | None:
        leaving = to_a2a(parts)
        if not leaving:
            return None
        artifact = Artifact(artifact_id=artifact_id, parts=leaving)
        artifact.metadata.update(_metadata(event))
        return TaskArtifactUpdateEvent(
            task_id=self._task_id,
            context_id=self._context_id,
            artifact=artifact,
            append=False,
            last_chunk=True,
        )


class PerRun(Output):
    """The parts of the agent's final response, once, when the run has ended."""

    def __init__(self, task_id: str, context_id: str) -> None:
        super().__init__(task_id, context_id)
        self._artifact_id = secrets.token_hex(16)
        self._held: TaskArtifactUpdateEvent | None = None

    def convert(self, event: Event) -> TaskArtifactUpdateEvent | None:
        if event.partial or not event.is_final_response():
            return None
        answer = [part for part in _parts(event) if is_answer(part)]
        return self._update(self._artifact_id, event, answer)

    def keep(
        self, event: Event, update: TaskArtifactUpdateEvent | None
    ) -> TaskArtifactUpdateEvent | None:
        if not event.partial and event.is_final_response():
            self._held = update
        return None

    def end(self) -> TaskArtifactUpdateEvent | None:
        return self._held


class PerEvent(Output):
    """One artifact for each ADK event; partial events of an author share one."""

    def __init__(self, task_id: str, context_id: str) -> None:
        super().__init__(task_id, context_id)
        self._open: dict[str, str] = {}
        self._started: set[str] = set()

    def convert(self, event: Event) -> TaskArtifactUpdateEvent | None:
        author = event.author
        artifact_id = self._open.get(author) or secrets.token_hex(16)
        update = self._update(artifact_id, event, _parts(event))
        if update is None:
            return None
        if event.partial:
            self._open[author] = artifact_id
            update.append = True
            update.last_chunk = False
        else:
            self._open.pop(author, None)
        return update

    def keep(
        self, event: Event, update: TaskArtifactUpdateEvent | None
    ) -> TaskArtifactUpdateEvent | None:
        if update is not None:
            # The first chunk that really leaves opens the artifact: appending to
            # an unknown one is a protocol error (A2A 1.0, 4.2.2).
            artifact_id = update.artifact.artifact_id
            if update.append and artifact_id not in self._started:
                update.append = False
            self._started.add(artifact_id)
        return update


def _parts(event: Event) -> list[types.Part]:
    return list((event.content and event.content.parts) or [])


def output(mode: OutputMode, task_id: str, context_id: str) -> Output:
    """Return a fresh output of the given mode for one run."""
    kind = PerRun if mode is OutputMode.PER_RUN else PerEvent
    return kind(task_id, context_id)
