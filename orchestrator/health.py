"""Which parts of the deployment answer, asked of their health addresses."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx

from orchestrator import deployment
from orchestrator.per_loop import PerLoop

PATH = "/healthz"
FRESH_SECONDS = 2.0
_TIMEOUT = httpx.Timeout(1.0)


@dataclass(frozen=True, slots=True)
class Answering:
    """One part and whether it answers; ``since`` when it does not."""

    name: str
    up: bool
    since: datetime | None = None


Health = tuple[Answering, ...]


class Monitor:
    """Asks every part at most once in ``FRESH_SECONDS``, however many want to know."""

    def __init__(self) -> None:
        self.latest: Health = ()
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()
        self._http = httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False)

    async def read(self) -> Health:
        """Return the health of the router and the replicas."""
        async with self._lock:
            if time.monotonic() - self._read_at > FRESH_SECONDS:
                addresses = _addresses().items()
                answers = [self._ask(name, url) for name, url in addresses]
                self.latest = tuple(await asyncio.gather(*answers))
                self._read_at = time.monotonic()
        return self.latest

    async def _ask(self, name: str, url: str) -> Answering:
        try:
            answer = await self._http.get(url + PATH)
        except httpx.HTTPError:
            return self._silent(name)
        return Answering(name, True) if answer.is_success else self._silent(name)

    def _silent(self, name: str) -> Answering:
        before = next((part for part in self.latest if part.name == name), None)
        since = before.since if before else None
        down = Answering(name, False, since)
        return down if since else replace(down, since=datetime.now(UTC))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _addresses() -> dict[str, str]:
    chosen = deployment.current()
    return {**chosen.replicas, "router": chosen.public_url}


_monitors = PerLoop(Monitor, lambda monitor: monitor.aclose())


async def read() -> Health:
    """Return which parts answer, no older than ``FRESH_SECONDS``."""
    return await _monitors.get().read()


def latest() -> Health:
    """Return what the last reading found; nothing before the first."""
    return _monitors.get().latest


async def soon(seconds: float = 0.1) -> Health:
    """Return the same, but the last known rather than wait longer than ``seconds``."""
    monitor = _monitors.get()
    reading = asyncio.ensure_future(monitor.read())
    await asyncio.wait([reading], timeout=seconds)
    return monitor.latest


def down(health: Health) -> frozenset[str]:
    """Return the names of the parts that do not answer."""
    return frozenset(part.name for part in health if not part.up)


async def aclose() -> None:
    """Close the running loop's connections; the next reading opens new ones."""
    await _monitors.aclose()
