"""One event of an answer's stream, in the words of a run's events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a.types import StreamResponse


@dataclass(frozen=True, slots=True)
class Frame:
    """A task, status, artifact or message that arrived.

    Args:
        type: which of the four.
        text: the text of a status or message.
        texts: the text parts of an artifact.
        data: its data parts.
        size: bytes of the event's payload on the wire.
        replica: who answered, as ``X-Replica`` says; empty when it does not.
        response: the JSON-RPC result as it arrived.
    """

    type: str
    task_id: str = ""
    context_id: str = ""
    state: str = ""
    text: str = ""
    texts: tuple[str, ...] = ()
    artifact_id: str = ""
    append: bool = False
    last_chunk: bool = False
    data: tuple[dict[str, Any], ...] = ()
    size: int = 0
    replica: str = ""
    response: Mapping[str, Any] | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the frame as the data of an ``event-received``."""
        return asdict(self) | {"texts": [*self.texts], "data": [*self.data]}


def frames(
    event: StreamResponse, *, size: int, replica: str, response: Mapping[str, Any]
) -> list[Frame]:
    """Read one streamed event.

    A task that already holds artifacts becomes several frames: they replace what
    was received of them before.
    """
    arrived = MessageToDict(event)
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        update = arrived["artifactUpdate"]
        found = [_artifact(update["artifact"], update)]
    elif kind == "status_update":
        found = [_status("status", arrived["statusUpdate"])]
    elif kind == "task":
        task = {**arrived["task"], "taskId": arrived["task"].get("id", "")}
        found = [_status("task", task)]
        found += [
            _artifact(artifact, {**task, "lastChunk": True})
            for artifact in task.get("artifacts", ())
        ]
    else:
        found = [_message(arrived.get("message", {}))]
    first = replace(found[0], size=size, replica=replica, response=response)
    return [first, *(replace(frame, replica=replica) for frame in found[1:])]


def _status(kind: str, update: Mapping[str, Any]) -> Frame:
    status = update.get("status", {})
    return Frame(
        kind,
        update.get("taskId", ""),
        update.get("contextId", ""),
        status.get("state", ""),
        "\n".join(_texts(status.get("message", {}).get("parts", ()))),
    )


def _artifact(artifact: Mapping[str, Any], update: Mapping[str, Any]) -> Frame:
    parts = artifact.get("parts", ())
    return Frame(
        "artifact",
        update.get("taskId", ""),
        update.get("contextId", ""),
        texts=tuple(_texts(parts)),
        artifact_id=artifact.get("artifactId", ""),
        append=update.get("append", False),
        last_chunk=update.get("lastChunk", False),
        data=tuple(_whole(part["data"]) for part in parts if "data" in part),
    )


def _message(message: Mapping[str, Any]) -> Frame:
    return Frame(
        "message",
        message.get("taskId", ""),
        message.get("contextId", ""),
        text="\n".join(_texts(message.get("parts", ()))),
    )


def _texts(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    return [part["text"] for part in parts if "text" in part]


def _whole(value: Any) -> Any:
    """Give whole numbers back as such: protobuf's own are all floating."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
