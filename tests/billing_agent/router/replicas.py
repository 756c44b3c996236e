"""Replicas for tests: reached without a network, up or down as the test says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from billing_agent.identity.tokens import Caller
from billing_agent.router.proxy import Router
from tests.billing_agent.asgi import Recorder, client

NAMES = ("replica-a", "replica-b")
ADDRESSES = {name: f"http://{name}" for name in NAMES}


class Replicas(httpx.AsyncBaseTransport):
    """Two applications behind one transport.

    ``broken`` holds what reaching one raises instead; ``asked`` the names in turn.
    """

    def __init__(self) -> None:
        self.apps: dict[str, Any] = {name: Recorder(name) for name in NAMES}
        self.broken: dict[str, Exception] = {}
        self.asked: list[str] = []

    def stop(self, *names: str) -> None:
        self.broken |= dict.fromkeys(names, httpx.ConnectError("refused"))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name = request.url.raw_host.decode()
        self.asked.append(name)
        if name in self.broken:
            raise self.broken[name]
        if isinstance(app := self.apps[name], httpx.Response):
            return app
        return await httpx.ASGITransport(app).handle_async_request(request)


class Stream(httpx.AsyncByteStream):
    """An answer's bytes piece by piece; a piece that is an error is raised."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed = True


class Entrance:
    """What the filter leaves in the scope, in front of a router."""

    def __init__(self, app: ASGIApp, subject: str = "someone") -> None:
        self.app = app
        self.subject = subject

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        caller = Caller(self.subject, "acme", "workshop")
        scope = {**scope, "caller": caller}
        if message["body"]:
            scope["a2a.body"] = json.loads(message["body"])
        waiting = [message]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, again, send)


class Stage:
    """A router in front of two replicas, and requests to it."""

    def __init__(self, **options: Any) -> None:
        self.replicas = Replicas()
        self.router = Router(ADDRESSES, transport=self.replicas, **options)
        self.entrance = Entrance(self.router)

    @property
    def asked(self) -> list[str]:
        return self.replicas.asked

    def taken(self, name: str) -> Recorder:
        """Return the recorder of a replica."""
        recorder: Recorder = self.replicas.apps[name]
        return recorder

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async with client(self.entrance) as http:
            return await http.request(method, path, **options)

    async def call(self, method: str, params: Any, **headers: str) -> httpx.Response:
        """Send a JSON-RPC request."""
        document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await self.ask("POST", "/a2a/", json=document, headers=headers)

    async def send(self, context_id: str = "ctx-41", **headers: str) -> httpx.Response:
        """Send a message in a context."""
        message = {"messageId": "m", "contextId": context_id}
        return await self.call("SendMessage", {"message": message}, **headers)
