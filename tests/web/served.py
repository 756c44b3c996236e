"""An application for the tests of ``serve``: ``served.py PORT [OPTION]...``"""

from __future__ import annotations

import asyncio
import socket
import sys

from billing_agent.serving import PortTaken, serve

port = int(sys.argv[1])
options = sys.argv[2:]
released = asyncio.Event()


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        message = await receive()
        await send({"type": "websocket.send", "text": message["text"].upper()})
        return
    more = scope["path"] == "/stream"
    if scope["path"] == "/release":
        released.set()
    try:
        if scope["path"] == "/abandoned":
            print("begun")
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hi", "more_body": more})
        if more:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("cancelled", scope["path"])
        raise


async def startup():
    with socket.socket() as client:
        refused = client.connect_ex(("127.0.0.1", port)) != 0
    print("startup, port", "closed" if refused else "open")


async def shutdown():
    print("draining")
    if "--break" in options:
        raise RuntimeError("the drain broke")
    if "--at-once" not in options:
        await released.wait()
    print("drained")


try:
    serve(
        application,
        port=port,
        startup=startup,
        shutdown=shutdown,
        abandon_after=0.1,
    )
except PortTaken as error:
    sys.exit(str(error))
print("ended")
