"""Two hundred browsers that follow one run, from each step to the last socket.

Every browser is a socket of the page's own protocol. A run is played by its owner; a
step is an event of it, from its commit (the database's time, on one machine also the
clock of this process) to the moment when the last socket has got parts that show it.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from benchmarks import ground, table
from benchmarks.ground import NotMeasured
from benchmarks.rows import Bar, Row, percentile, shown
from orchestrator import client, runs
from orchestrator.config import Configuration
from orchestrator.events import Event
from orchestrator.models import Run
from orchestrator.story import send_turn
from web.demo.running import RunningDemo

BROWSERS = 200
LAST_SOCKET = Bar(150, "ms")
DEADLINE = 20.0
_CURSOR = re.compile(r'id="cursor"[^>]*data-seq="(\d+)"[^>]*data-have="([^"]*)"')


def measure(quick: bool) -> list[Row]:
    """Follow runs with 200 sockets each while their first turn is played."""
    with ground.demo() as running:
        late = asyncio.run(_measure(running, 2 if quick else 10))
    return [
        Row(
            "browsers",
            f"{BROWSERS} browsers: a step to the last socket, p95",
            LAST_SOCKET,
            percentile(late, 0.95),
            f"p50 {shown(statistics.median(late), 'ms')}, "
            f"max {shown(max(late), 'ms')} of {len(late)} steps",
        )
    ]


@dataclass(slots=True)
class Browser:
    """One open page: what it has been shown, and when."""

    socket: ClientConnection
    seen: list[tuple[int, float]] = field(default_factory=list)

    async def follow(self) -> None:
        """Note what arrives until the socket is closed."""
        async for frame in self.socket:
            now = time.time()
            if found := _CURSOR.search(str(frame)):
                self.seen.append((int(found[1]), now))

    async def shows(self, seq: int) -> None:
        """Wait until event ``seq`` was shown."""
        while not self.seen or self.seen[-1][0] < seq:
            await asyncio.sleep(0.01)

    def shown_at(self, seq: int) -> float:
        """Return when parts that show event ``seq`` first arrived."""
        return next(at for newest, at in self.seen if newest >= seq)


async def _measure(running: RunningDemo, rounds: int) -> list[float]:
    try:
        return [lag for _ in range(rounds) for lag in await _followed(running)]
    finally:
        await client.close()
        await runs.close()


async def _followed(running: RunningDemo) -> list[float]:
    """Play one turn before all browsers; return the milliseconds of each event."""
    run = await runs.create(Configuration())
    async with AsyncExitStack() as stack:
        browsers = await _open(running, run, stack)
        following = [asyncio.create_task(browser.follow()) for browser in browsers]
        await send_turn(run)
        events = await runs.read(run.id)
        try:
            async with asyncio.timeout(DEADLINE):
                for browser in browsers:
                    await browser.shows(events[-1].seq)
        except TimeoutError:
            raise NotMeasured("a browser never saw the last event") from None
        for task in following:
            task.cancel()
    return [_lag(event, browsers) for event in events]


async def _open(running: RunningDemo, run: Run, stack: AsyncExitStack) -> list[Browser]:
    """Open every browser at the first step, as its page does."""
    page = f"/runs/{run.id}/walk/1/"
    async with httpx.AsyncClient(base_url=running.web_url, trust_env=False) as http:
        found = _CURSOR.search((await http.get(page)).text)
    if found is None:
        raise NotMeasured(f"{page} has no cursor")
    here = {"do": "goto", "run": run.id, "step": 1, "seq": None, "have": found[2]}
    address = f"ws://{urlsplit(running.web_url).netloc}/ws/runs/{run.id}/"
    browsers = []
    for _ in range(BROWSERS):
        socket = await stack.enter_async_context(
            connect(address, origin=Origin(running.web_url), max_size=None)
        )
        await socket.send(json.dumps(here))
        browsers.append(Browser(socket))
    return browsers


def _lag(event: Event, browsers: Sequence[Browser]) -> float:
    last = max(browser.shown_at(event.seq) for browser in browsers)
    return (last - event.at.timestamp()) * 1000


if __name__ == "__main__":
    sys.exit(table.run([measure]))
