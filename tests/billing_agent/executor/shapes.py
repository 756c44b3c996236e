"""Short names for what a queue holds."""

from __future__ import annotations

from typing import Any

from a2a.types import Task, TaskArtifactUpdateEvent, TaskState


def shape(event: Any) -> str:
    """Return ``Task``, an artifact's joined text, or a status name."""
    if isinstance(event, Task):
        return "Task"
    if isinstance(event, TaskArtifactUpdateEvent):
        return "artifact(" + "".join(part.text for part in event.artifact.parts) + ")"
    return TaskState.Name(event.status.state).removeprefix("TASK_STATE_")


def shapes(events: list[Any]) -> list[str]:
    """Return the shapes of all events, in order."""
    return [shape(event) for event in events]


def artifacts(events: list[Any]) -> list[TaskArtifactUpdateEvent]:
    """Return the artifact updates, in order."""
    return [event for event in events if isinstance(event, TaskArtifactUpdateEvent)]
