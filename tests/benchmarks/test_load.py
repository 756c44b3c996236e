"""The load generator against a server that answers in each way HTTP/1.1 has."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.load import UNIQUE, Load, UnexpectedAnswer, run

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
CHUNKED = b"\r\n".join(
    [
        b"HTTP/1.1 200 OK",
        b"Transfer-Encoding: chunked",
        *(b"", b"2", b"do", b"2", b"ne", b"0", b"", b""),
    ]
)
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ndone"


@asynccontextmanager
async def serving(answer):
    """Yield (port, bodies received, connections made) of a server with one answer."""
    bodies, connections = [], []

    async def talk(reader, writer):
        connections.append(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length: ")[2].split()[0])
                bodies.append((await reader.readexactly(size)).decode())
                writer.write(answer)
                if answer is CLOSING:
                    break
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], bodies, connections
        await asyncio.wait(connections)


def load(port, **changes):
    options = {
        "host": "127.0.0.1",
        "port": port,
        "path": "/",
        "headers": {"A": "b"},
        "body": f"message {UNIQUE}",
        "expected": "done",
        "at_once": 3,
        "seconds": 0.2,
        "warmup": 0.0,
    }
    return Load(**{**options, **changes})


@pytest.mark.parametrize("answer", [SIZED, CHUNKED, CLOSING])
async def test_every_answer_is_counted_once(answer):
    async with serving(answer) as (port, bodies, _):
        outcome = await run(load(port))
    assert 0 < len(outcome.latencies) <= len(bodies)
    assert outcome.rate == len(outcome.latencies) / 0.2


async def test_connections_are_kept():
    async with serving(SIZED) as (port, bodies, connections):
        await run(load(port))
    assert len(connections) == 3 < len(bodies)


async def test_each_request_has_an_id_of_its_own():
    async with serving(SIZED) as (port, bodies, _):
        await run(load(port))
    assert len(set(bodies)) == len(bodies)


async def test_what_is_answered_while_warming_up_is_not_counted():
    async with serving(SIZED) as (port, bodies, _):
        outcome = await run(load(port, warmup=0.2))
    assert len(outcome.latencies) < len(bodies)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\ndone",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfail",
    ],
)
async def test_unexpected_answer_ends_it(answer):
    async with serving(answer) as (port, _, _):
        with pytest.raises(UnexpectedAnswer):
            await run(load(port))


async def test_it_runs_as_a_script_of_its_own():
    script = Path(__file__).parents[2] / "benchmarks" / "load.py"
    async with serving(SIZED) as (port, _, _):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(script),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        spec = json.dumps(asdict(load(port))).encode()
        out, _ = await process.communicate(spec)
    assert json.loads(out)["rate"] > 0
