"""The gate before a replica: says whether it is ready, and closes to drain it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from billing_agent.refusals import Later, refuse

LIVE_PATH = "/healthz"
READY_PATH = "/readyz"


class Gate:
    """ASGI middleware that answers health checks and refuses work once closed.

    Args:
        app: the replica.
        ready: says whether the replica's parts work, the database among them.
    """

    def __init__(self, app: ASGIApp, ready: Callable[[], Awaitable[bool]]) -> None:
        self._app = app
        self._ready = ready
        self._closed = False
        self._unanswered: set[object] = set()

    def owes(self) -> bool:
        """Return whether a request was let in whose answer has not begun."""
        return bool(self._unanswered)

    def close(self) -> None:
        """Refuse new requests from now on, so that the router falls over."""
        self._closed = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == LIVE_PATH:
            await _answer(send, 200, "up")
        elif path == READY_PATH:
            ready = not self._closed and await self._ready()
            await _answer(send, *((200, "ready") if ready else (503, "not ready")))
        elif self._closed and scope["type"] == "http":
            await refuse(scope, send, Later("this replica is shutting down"))
        else:
            await self._let_in(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = object()
        self._unanswered.add(request)

        async def answered(message: Message) -> None:
            self._unanswered.discard(request)
            await send(message)

        try:
            await self._app(scope, receive, answered)
        finally:
            self._unanswered.discard(request)


async def _answer(send: Send, status: int, word: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = json.dumps({"status": word}).encode()
    await send({"type": "http.response.body", "body": body})
