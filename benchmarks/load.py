"""The load generator: one process, one event loop, as little work as it can do.

Run as a script, so that nothing of the project is imported. It reads what to send from
standard input and prints what came of it, both as JSON. The same generator drives
every side of a comparison.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from dataclasses import asdict, dataclass, field

UNIQUE = "{unique}"
"""Stands for a fresh id in a body."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send, how often, for how long.

    Args:
        host: where to connect.
        port: where to connect.
        path: what is posted to.
        headers: of every request.
        body: of every request; ``UNIQUE`` in it becomes a fresh id.
        expected: what every answer must contain.
        at_once: connections, with one request under way on each.
        seconds: how long answers are counted.
        warmup: seconds before that.
    """

    host: str
    port: int
    path: str
    headers: dict[str, str]
    body: str
    expected: str
    at_once: int
    seconds: float
    warmup: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answers a second, and the milliseconds each took."""

    rate: float
    latencies: list[float] = field(repr=False)


class UnexpectedAnswer(Exception):
    """An answer that is not what was to be measured."""


class Connection:
    """One kept connection: HTTP/1.1, one request after the other."""

    def __init__(self, load: Load) -> None:
        self._address = load.host, load.port
        lines = [f"POST {load.path} HTTP/1.1", f"Host: {load.host}:{load.port}"]
        lines += [f"{name}: {value}" for name, value in load.headers.items()]
        self._head = "\r\n".join([*lines, "Content-Length: "]).encode()
        self._expected = load.expected.encode()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, body: bytes) -> None:
        """Send one request and read its answer.

        Raises:
            UnexpectedAnswer: it is no 200, or lacks what was expected.
        """
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(*self._address)
        self._writer.write(self._head + b"%d\r\n\r\n" % len(body) + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        answer = await _content(self._reader, head)
        if b"\r\nconnection: close" in head:
            await self.close()
        if head[9:12] != b"200" or self._expected not in answer:
            raise UnexpectedAnswer((head + answer[:2000]).decode(errors="replace"))

    async def close(self) -> None:
        """Close the connection; the next request opens another."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.close()
            await writer.wait_closed()


async def _content(reader: asyncio.StreamReader, head: bytes) -> bytes:
    _, named, rest = head.partition(b"\r\ncontent-length:")
    if named:
        return await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    chunks = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(chunks)


async def run(load: Load) -> Outcome:
    """Send for as long as the load says; answers under way are read to their end.

    Raises:
        UnexpectedAnswer: there was one; nothing is sent after it.
    """
    start = time.perf_counter() + load.warmup
    end = start + load.seconds
    latencies: list[float] = []

    async def keep_sending() -> None:
        connection = Connection(load)
        try:
            while (begun := time.perf_counter()) < end:
                body = load.body.replace(UNIQUE, uuid.uuid4().hex)
                await connection.post(body.encode())
                if start <= (ended := time.perf_counter()) <= end:
                    latencies.append((ended - begun) * 1000)
        finally:
            await connection.close()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(load.at_once):
                group.create_task(keep_sending())
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    return Outcome(len(latencies) / load.seconds, latencies)


if __name__ == "__main__":
    outcome = asyncio.run(run(Load(**json.load(sys.stdin))))
    json.dump(asdict(outcome), sys.stdout)
