"""Plain ASGI for tests: an application that remembers, and a client for it."""

from __future__ import annotations

import json
from typing import Any

import httpx
from starlette.types import Message, Receive, Scope, Send


class Recorder:
    """An application that answers 200 and keeps what it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.scopes: list[Scope] = []
        self.bodies: list[bytes] = []
        self.answer = {"ok": True} if answer is None else answer

    @property
    def scope(self) -> Scope:
        (scope,) = self.scopes
        return scope

    @property
    def body(self) -> bytes:
        (body,) = self.bodies
        return body

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode(): v.decode() for k, v in self.scope["headers"]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.scopes.append(scope)
        self.bodies.append(body)
        await say(send, 200, self.answer)


async def say(
    send: Send,
    status: int,
    document: Any,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Answer with JSON."""
    start = {"type": "http.response.start", "status": status}
    json_type = (b"content-type", b"application/json")
    await send({**start, "headers": [json_type, *headers]})
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})


def client(app: Any, **headers: str) -> httpx.AsyncClient:
    """Return a client that speaks to the application in this process."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=headers
    )


def receiving(*messages: Message) -> Receive:
    """Return a ``receive`` that gives these messages in turn."""
    waiting = list(messages)

    async def receive() -> Message:
        return waiting.pop(0)

    return receive


def part(body: bytes, more: bool = False) -> Message:
    """Return a message with a piece of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


GONE: Message = {"type": "http.disconnect"}
