"""Caps the bytes one event stream may send.

Daphne buffers without bound for a client that does not read, and ASGI code cannot
see that; what can be bounded is what one stream is given to send.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)


class StreamLimit:
    """ASGI middleware: ends an event stream with an error event at its limit.

    Args:
        app: the application whose streams are capped.
        limit: bytes one ``text/event-stream`` response may carry.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stream = _Stream(receive, send, self._limit)
        await self._app(scope, stream.receive, stream.send)
        if stream.full:
            # A cancelled response leaves its last event in a reference cycle, and
            # Python counts objects, not bytes: large events would pile up.
            gc.collect(1)


class _Stream:
    """One response: passes on what fits and then reports the client as gone."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._left = limit
        self._counted = False
        self._full = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether the limit was reached."""
        return self._full.is_set()

    async def receive(self) -> Message:
        if not self._counted:
            return await self._receive()
        # A full stream looks like a client that left: the SDK then unsubscribes.
        asked = asyncio.ensure_future(self._receive())
        filled = asyncio.ensure_future(self._full.wait())
        try:
            await asyncio.wait({asked, filled}, return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else {"type": "http.disconnect"}
        finally:
            asked.cancel()
            filled.cancel()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = Headers(raw=message.get("headers", [])).get("content-type", "")
            self._counted = kind.startswith("text/event-stream")
        elif self._counted:
            if self.full:
                return
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self._full.set()
                logger.warning("An event stream reached its limit and was ended")
                message = {"type": "http.response.body", "body": _limit_event()}
        await self._send(message)


def _limit_event() -> bytes:
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32603, "message": "The event stream reached its limit."},
    }
    return f"event: error\r\ndata: {json.dumps(body)}\r\n\r\n".encode()
