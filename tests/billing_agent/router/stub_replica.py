"""A replica for the router's tests: ``stub_replica.py NAME PORT``, says what it does.

``POST /a2a/`` and ``POST /a2a/rest/message:stream`` begin an event stream; each
``GET /more`` adds one event to every stream, ``GET /end`` ends them.
"""

from __future__ import annotations

import asyncio
import json
import sys

from billing_agent.serving import serve

name = sys.argv[1]
streams: set[asyncio.Queue[bytes | None]] = set()
STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]


async def application(scope, receive, send):
    if scope["path"] in ("/more", "/end"):
        for queue in streams:
            queue.put_nowait(b"data: more\n\n" if scope["path"] == "/more" else None)
    if scope["path"] == "/cut":
        await begin(send, [(b"content-length", b"1000")])
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        print("half sent")
        await asyncio.Event().wait()
    elif scope["method"] == "POST":
        headers = dict(scope["headers"])
        print("asked", headers.get(b"accept-encoding", b"").decode())
        await stream(receive, send)
    else:
        await begin(send, [(b"content-type", b"application/json")])
        body = json.dumps(
            {"name": name, "host": dict(scope["headers"])[b"host"].decode()}
        )
        await send({"type": "http.response.body", "body": body.encode()})


async def begin(send, headers):
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    await send(start)


async def stream(receive, send):
    queue = asyncio.Queue()
    queue.put_nowait(b"data: first\n\n")
    streams.add(queue)
    watching = asyncio.ensure_future(watch(receive, queue))
    await begin(send, STREAM)
    while (event := await queue.get()) is not None:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    streams.discard(queue)
    watching.cancel()


async def watch(receive, queue):
    while (await receive())["type"] != "http.disconnect":
        pass
    print("client left")
    queue.put_nowait(None)


serve(application, port=int(sys.argv[2]))
