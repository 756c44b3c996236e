"""One A2A request, whichever binding wrote it: what it does, and about what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs

from billing_agent.card import REST_PATH, RPC_PATH

Kind = Literal["send", "task", "other"]

_RPC_SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
_REST_SENDS = frozenset({f"{REST_PATH}/message:{verb}" for verb in ("send", "stream")})
_REST_TASK = f"{REST_PATH}/tasks/"
_REST_VERBS = (":cancel", ":subscribe")


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks for, in the caller's own words.

    Args:
        kind: ``send`` has a message, ``task`` names a task only.
        params: the parameters: the JSON-RPC ``params``, or the body of the HTTP+JSON
            binding; whatever JSON the caller wrote.
        context_id: the conversation named, empty when none is.
        task_id: the task named, empty when none is.
    """

    kind: Kind = "other"
    params: Any = None
    context_id: str = ""
    task_id: str = ""

    @property
    def message(self) -> dict[str, Any]:
        """The message of a send; empty when it is none."""
        return member(self.params, "message")


def member(document: Any, name: str) -> dict[str, Any]:
    """Return an object inside a JSON object; an empty one when there is none."""
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def read(path: str, document: Any = None, query: bytes = b"") -> Call:
    """Return what the request at ``path`` says, without judging it.

    A2A 1.0, section 9 (JSON-RPC) and section 11 (HTTP+JSON); field names in either
    of protobuf's spellings, as a2a-sdk takes them.
    """
    if path == RPC_PATH:
        return _read_rpc(document if isinstance(document, dict) else {})
    if path in _REST_SENDS:
        return _send(document)
    if path.startswith(_REST_TASK):
        return Call("task", document, task_id=_rest_task(path))
    asked = parse_qs(query.decode("latin-1")) if query else {}
    return Call("other", document, context_id=asked.get("contextId", [""])[-1])


def _read_rpc(document: dict[str, Any]) -> Call:
    params = document.get("params")
    if isinstance(method := document.get("method"), str) and method in _RPC_SENDS:
        return _send(params)
    context_id = _text(params, "contextId", "context_id")
    task_id = _text(params, "taskId", "task_id", "id")
    return Call("task" if task_id else "other", params, context_id, task_id)


def _send(params: Any) -> Call:
    message = member(params, "message")
    return Call(
        "send",
        params,
        _text(message, "contextId", "context_id"),
        _text(message, "taskId", "task_id"),
    )


def _rest_task(path: str) -> str:
    task_id = path.removeprefix(_REST_TASK).partition("/")[0]
    for verb in _REST_VERBS:
        task_id = task_id.removesuffix(verb)
    return task_id


def _text(document: Any, *names: str) -> str:
    if isinstance(document, dict):
        for name in names:
            if isinstance(value := document.get(name), str) and value:
                return value
    return ""
