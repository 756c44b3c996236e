"""Runs as this process last read them, shared by every page that shows one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import runs
from orchestrator.lease import is_abandoned
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
        self._reading: dict[str, asyncio.Task[Snapshot]] = {}

    async def fresh(self, run_id: str) -> Snapshot:
        """Return the run as it is now.

        Raises:
            RunUnknown: there is no such run.
        """
        run = await runs.get(run_id)
        kept = self._kept.get(run_id)
        events = kept.events if kept and kept.seq <= run.last_seq else ()
        if run.last_seq > len(events):
            events += tuple(await runs.read(run_id, after=len(events)))
        # What was recorded after the run was read waits for the next reading.
        snapshot = Snapshot(run, events[: run.last_seq])
        self._keep(snapshot)
        return snapshot

    async def at_least(self, run_id: str, seq: int) -> Snapshot:
        """Return the run with event ``seq``, read once however many ask.

        Args:
            run_id: the run.
            seq: a number that is known to be recorded.

        Raises:
            RunUnknown: there is no such run.
        """
        kept = self._kept.get(run_id)
        # A sender renews its claim in the run's row, which no event tells.
        if kept is not None and kept.seq >= seq and not is_abandoned(kept.run):
            return kept
        found = await self._read_together(run_id)
        # The reading that was joined may have begun before the event was recorded.
        return found if found.seq >= seq else await self._read_together(run_id)

    async def _read_together(self, run_id: str) -> Snapshot:
        if run_id not in self._reading:
            self._reading[run_id] = reading = asyncio.create_task(self.fresh(run_id))
            reading.add_done_callback(lambda _: self._reading.pop(run_id))
        return await asyncio.shield(self._reading[run_id])

    def _keep(self, snapshot: Snapshot) -> None:
        self._kept[snapshot.run.id] = snapshot
        self._kept.move_to_end(snapshot.run.id)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    async def aclose(self) -> None:
        """Forget everything."""
        self._kept.clear()


_shared = PerLoop(Snapshots, lambda snapshots: snapshots.aclose())


def shared() -> Snapshots:
    """Return the running loop's snapshots."""
    return _shared.get()
