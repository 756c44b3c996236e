"""A client that never reads its stream costs a bounded number of bytes."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import psutil
import pytest

from tests.billing_agent.contract.watch import until
from tests.conftest import peers_of, running_demo
from tests.peer import message_params, state
from tests.weather.stored import states

pytestmark = [pytest.mark.weather, pytest.mark.statement(41)]

LIMIT = 64 * 1024
BIG = 3 * 2**20
AUDIT = "audit the last 15 invoices"
QUESTION = "Why was invoice 8812 higher than last month?"
MANY = 60
WARNING = "An event stream reached its limit"


@pytest.fixture(scope="module")
def narrow_demo():
    """A demo whose streams may send 64 KiB."""
    settings = {
        "STREAM_LIMIT": str(LIMIT),
        "SCRIPTED_MODEL_LATENCY": "0.02",
        "RATE_BURST": "1000",
    }
    with running_demo(**settings) as running:
        yield running


@pytest.fixture
async def peer(narrow_demo):
    async with peers_of(narrow_demo) as make:
        yield await make("replica-b", f"unread-{secrets.token_hex(4)}")


def ask_and_never_read(peer, method, params, headers=()):
    """Send a request on a connection of its own; return the socket."""
    address = urlsplit(peer.url)
    connection = socket.socket()
    # Small, so that what is not read stays with the server.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((address.hostname, address.port))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    lines = [
        "POST /a2a/ HTTP/1.1",
        f"Host: {address.netloc}",
        f"Authorization: {peer.http.headers['Authorization']}",
        "A2A-Version: 1.0",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in dict(headers).items()),
    ]
    connection.sendall("\r\n".join([*lines, "", body]).encode())
    return connection


def read_to_the_end(connection):
    """Return the body's bytes, chunk sizes taken out."""
    connection.settimeout(20)
    received = b""
    while not received.endswith(b"\r\n0\r\n\r\n"):
        more = connection.recv(65536)
        assert more, "the response was cut off"
        received += more
    _, _, rest = received.partition(b"\r\n\r\n")
    body = b""
    while (size := int(rest.partition(b"\r\n")[0], 16)) > 0:
        rest = rest.partition(b"\r\n")[2]
        body, rest = body + rest[:size], rest[size + 2 :]
    return body


def _log(demo):
    return (demo.var_dir / "log" / "replica-b.log").read_text()


async def test_an_unread_stream_ends_at_its_limit_and_its_run_at_its_end(
    narrow_demo, peer
):
    # The first event fits, with the message in it; the artifacts do not.
    text = AUDIT + " " * (LIMIT - 8 * 1024)
    params, headers = message_params(text, context_id="ctx-41", output="per-event")
    with ask_and_never_read(peer, "SendStreamingMessage", params, headers) as unread:
        (task,) = await until(lambda: _tasks(peer))
        # Other clients see and do what they always do.
        async with peer.stream("list my invoices") as events:
            seen = [event async for event in events]
        assert "TASK_STATE_COMPLETED" in str(seen[-1])
        done = await peer.until(task["id"])
        body = await asyncio.to_thread(read_to_the_end, unread)

    assert state(done) == "COMPLETED"
    assert len(done["artifacts"]) == 31
    assert (await states(narrow_demo, task["id"]))[-1] == "COMPLETED"
    assert LIMIT / 2 < len(body) <= LIMIT + 1024
    frames = [line for line in body.decode().splitlines() if line.startswith("data:")]
    assert json.loads(frames[-1].removeprefix("data:"))["error"]["code"] == -32603
    assert WARNING in _log(narrow_demo)


async def test_many_unread_streams_leave_memory_and_others_alone(narrow_demo, peer):
    """What they were given is not kept, although they stay open and unread."""
    # A parked task can be subscribed to for as long as it waits.
    task = await peer.send(QUESTION + " " * BIG)
    assert state(task) == "INPUT_REQUIRED"
    with ExitStack() as unread:

        async def subscribe_and_never_read():
            before = _log(narrow_demo).count(WARNING)
            params = {"id": task["id"]}
            unread.enter_context(ask_and_never_read(peer, "SubscribeToTask", params))
            await until(lambda: _warned(narrow_demo, before))

        replica = psutil.Process(narrow_demo.pid_of("replica-b"))
        for _ in range(10):
            await subscribe_and_never_read()
        before = replica.memory_info().rss
        for _ in range(MANY):
            await subscribe_and_never_read()
        assert replica.memory_info().rss - before < MANY * BIG / 4
        assert state(await peer.send("list my invoices")) == "COMPLETED"
    answered = await peer.send("The compute line.", task_id=task["id"])
    assert state(answered) == "COMPLETED"


async def _tasks(peer):
    return (await peer.rpc("ListTasks", {"contextId": "ctx-41"}))["tasks"]


async def _warned(demo, before):
    return _log(demo).count(WARNING) > before
