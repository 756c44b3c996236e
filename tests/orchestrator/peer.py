"""A tiny real HTTP server: issuer, agent and replica of the client's tests.

It writes exactly the bytes a test wants, in the pieces it wants.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from orchestrator.deployment import Deployment


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Reply:
    """Bytes in pieces; an ``asyncio.Event`` among them holds the rest back.

    ``whole`` False closes the connection before the body is complete.
    """

    pieces: list = field(default_factory=list)
    status: int = 200
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    whole: bool = True


def told(value, status=200, **headers):
    return Reply([json.dumps(value).encode()], status, headers=headers)


def stream(*events, replica="replica-b", whole=True):
    """Return a stream of JSON-RPC results."""
    pieces = [
        event if isinstance(event, (bytes, asyncio.Event)) else sse(event)
        for event in events
    ]
    headers = {"X-Replica": replica} if replica else {}
    return Reply(pieces, 200, "text/event-stream", headers, whole)


def sse(result):
    frame = {"jsonrpc": "2.0", "id": "1", "result": result}
    return f"data: {json.dumps(frame, ensure_ascii=False)}\n\n".encode()


def submitted(task="task-1"):
    status = {"state": "TASK_STATE_SUBMITTED"}
    return {"task": {"id": task, "contextId": "ctx-41", "status": status}}


def status(state, text="", task="task-1"):
    found = {"state": f"TASK_STATE_{state}"}
    if text:
        found["message"] = {
            "messageId": "m",
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
        }
    return {"statusUpdate": {"taskId": task, "contextId": "ctx-41", "status": found}}


def artifact(text, task="task-1", **more):
    parts = [{"text": text}, {"data": {"invoice": 8812, "change": [1055.5, 2.0]}}]
    update = {
        "taskId": task,
        "contextId": "ctx-41",
        "artifact": {"artifactId": "art-1", "parts": parts},
        "lastChunk": True,
    }
    return {"artifactUpdate": update | more}


class Peer:
    """What it says to a path is ``replies[path]``: a reply, or a function of requests.

    A list is used up one by one, its last one for ever.
    """

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"
        self.requests = []
        self.replies = {
            "/.well-known/oauth-authorization-server": told(
                {"issuer": self.url, "token_endpoint": f"{self.url}/token"}
            ),
            "/token": told({"access_token": "secret-token", "expires_in": 300}),
            "/.well-known/agent-card.json": told(self.card()),
            "/demo/ledger": told({"replica": "replica-b", "stores": []}),
        }

    def card(self):
        interface = {
            "url": f"{self.url}/a2a/",
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        }
        return {
            "name": "Billing agent",
            "description": "Explains invoices.",
            "version": "1",
            "supportedInterfaces": [interface],
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [],
        }

    @property
    def deployment(self):
        return self.deployed()

    def deployed(self, **changes):
        values = {
            "database": "",
            "public_url": self.url,
            "issuer": self.url,
            "client_id": "orchestrator",
            "client_secret": "its-secret",
            "replicas": {"replica-b": self.url},
        }
        return Deployment(**values | changes)

    def asked(self, path):
        return [request for request in self.requests if request.path == path]

    async def handle(self, reader, writer):
        try:
            request = await _read(reader)
            self.requests.append(request)
            await _write(writer, self._reply(request))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client left: some tests are about that.
        finally:
            writer.close()

    def _reply(self, request):
        reply = self.replies.get(request.path, Reply(status=404))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        return reply(request) if callable(reply) else reply


async def _read(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


async def _write(writer, reply):
    headers = {
        "Content-Type": reply.type,
        "Transfer-Encoding": "chunked",
        "Connection": "close",
        **reply.headers,
    }
    lines = [f"HTTP/1.1 {reply.status} So", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for piece in reply.pieces:
        await writer.drain()
        if isinstance(piece, asyncio.Event):
            await piece.wait()
        elif piece:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if reply.whole:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def serving():
    """Run a peer on a free port."""
    peer = None

    async def handle(reader, writer):
        await peer.handle(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    peer = Peer(server.sockets[0].getsockname()[1])
    async with server:
        yield peer
