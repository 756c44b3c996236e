"""What the router has to carry: one request, its conversation and its wishes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from billing_agent import calls
from billing_agent.card import RPC_PATH
from billing_agent.errors import RequestRefused
from billing_agent.facts import Origin
from billing_agent.router.routing import Conversation

if TYPE_CHECKING:
    from starlette.types import Scope

    from billing_agent.calls import Call

PART = "router"


@dataclass(frozen=True, slots=True)
class Errand:
    """One request to pass on.

    ``affinity`` is the caller's wish; the conversation's context id is empty when
    nothing says which it is.
    """

    scope: Scope
    body: bytes
    call: Call
    conversation: Conversation
    affinity: bool

    @property
    def origin(self) -> Origin:
        """Where facts about it come from."""
        subject, context_id = self.conversation
        return Origin(PART, subject, context_id, self.call.task_id)


async def errand_of(
    scope: Scope, body: bytes, task_contexts: Callable[[str, str], Awaitable[str]]
) -> Errand:
    """Return the errand of a request that has passed the filter.

    A new conversation gets its context id here, because the replica it belongs to
    follows from it.

    Raises:
        RequestRefused: ``X-Affinity`` is neither on nor off.
    """
    document = scope.get("a2a.body")
    call = calls.read(scope["path"], document, scope["query_string"])
    caller = scope.get("caller")
    subject = caller.subject if caller else ""
    affinity = _affinity(scope)
    context_id = call.context_id
    if not context_id and call.task_id:
        context_id = _header(scope, b"x-a2a-context")
        context_id = context_id or await task_contexts(subject, call.task_id)
    elif not context_id and call.message and _names_none(call.message):
        context_id = str(uuid.uuid4())
        body = _begun(scope["path"], document, call, context_id)
    return Errand(scope, body, call, Conversation(subject, context_id), affinity)


def _names_none(message: dict[str, Any]) -> bool:
    """Return whether a message leaves its context to the agent.

    A context that is no text is the replica's to refuse.
    """
    return not any(
        message.get(name) not in (None, "") for name in ("contextId", "context_id")
    )


def _affinity(scope: Scope) -> bool:
    wish = _header(scope, b"x-affinity").strip().lower()
    if wish not in {"", "on", "off"}:
        raise RequestRefused("X-Affinity must be on or off")
    return wish != "off"


def _header(scope: Scope, name: bytes) -> str:
    found = next((value for given, value in scope["headers"] if given == name), b"")
    return found.decode(errors="replace")


def _begun(path: str, document: Any, call: Call, context_id: str) -> bytes:
    """Return the body of a send with a context id in its message."""
    message = {**call.message, "contextId": context_id}
    message.pop("context_id", None)
    params = {**call.params, "message": message}
    whole = {**document, "params": params} if path == RPC_PATH else params
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
