"""A stream's frames folded into a task, by the rules of A2A 1.0, section 4.2.2."""

from __future__ import annotations

import copy
from typing import Any

from tests.peer import ENDED


def fold(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the task that a client has after all frames.

    An artifact update appends to an artifact, or stands for it from then on.
    """
    task: dict[str, Any] = {}
    for frame in frames:
        ((kind, event),) = frame.items()
        if kind == "task":
            task = copy.deepcopy(event)
        elif kind == "statusUpdate":
            task["status"] = event["status"]
        else:
            _release(task.setdefault("artifacts", []), event)
    return task


def _release(artifacts: list[dict[str, Any]], event: dict[str, Any]) -> None:
    artifact = copy.deepcopy(event["artifact"])
    places = {known["artifactId"]: at for at, known in enumerate(artifacts)}
    at = places.get(artifact["artifactId"])
    if event.get("append"):
        assert at is not None, "a chunk for an artifact that nothing began"
        artifacts[at]["parts"] += artifact["parts"]
    elif at is None:
        artifacts.append(artifact)
    else:
        artifacts[at] = artifact


def ends(frames: list[dict[str, Any]]) -> list[int]:
    """Return the positions of the frames that end a run."""
    return [at for at, frame in enumerate(frames) if _ends(frame)]


def _ends(frame: dict[str, Any]) -> bool:
    ((_, event),) = frame.items()
    return event.get("status", {}).get("state") in ENDED
