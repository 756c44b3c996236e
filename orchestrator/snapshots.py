"""Runs as this process last read them, shared by every page that shows one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import runs
from orchestrator.per_loop import PerLoop

if TYPE_CHECKING:
    from orchestrator.events import Event
    from orchestrator.models import Run

MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run and all events recorded when it was read."""

    run: Run
    events: tuple[Event, ...]

    @property
    def seq(self) -> int:
        """The number of its newest event, 0 before the first."""
        return len(self.events)


class Snapshots:
    """Reads runs; events never change, so only new ones are read again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = asyncio.Lock()

    async def fresh(self, run_id: str) -> Snapshot:
        """Return the run as it is now.

        Raises:
            RunUnknown: there is no such run.
        """
        async with self._lock:
            return await self._read(run_id)

    async def at_least(self, run_id: str, seq: int) -> Snapshot:
        """Return the run with event ``seq``; read once, however many ask.

        Raises:
            RunUnknown: there is no such run.
        """
        async with self._lock:
            kept = self._kept.get(run_id)
            if kept is not None and kept.seq >= seq:
                return kept
            return await self._read(run_id)

    async def _read(self, run_id: str) -> Snapshot:
        kept = self._kept.pop(run_id, None)
        run = await runs.get(run_id)
        events = kept.events if kept and kept.seq <= run.last_seq else ()
        if run.last_seq > len(events):
            events += tuple(await runs.read(run_id, after=len(events)))
        # What was recorded after the run was read waits for the next reading.
        self._kept[run_id] = snapshot = Snapshot(run, events[: run.last_seq])
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return snapshot

    async def aclose(self) -> None:
        """Forget everything."""
        self._kept.clear()


_shared = PerLoop(Snapshots, lambda snapshots: snapshots.aclose())


def shared() -> Snapshots:
    """Return the running loop's snapshots."""
    return _shared.get()
