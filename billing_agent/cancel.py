"""The cancel channel: what another replica ended, this one stops or lets go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from a2a.types import TaskState
from psycopg import OperationalError

from billing_agent import facts
from billing_agent.executor.outcome import TERMINAL, status
from billing_agent.executor.registry import Run, RunRegistry
from billing_agent.stores.bus import Bus
from billing_agent.stores.tasks import CHANNEL, TaskNotice, TaskStore

logger = logging.getLogger(__name__)


class CancelChannel:
    """Hears of terminal states on the bus and ends what this process holds for them.

    A run stops at once, wherever it is, unless it was sent with the channel off. A
    parked task's queue gets the status, so that its subscribers see it and a2a-sdk
    lets the task go. After a gap on the bus the table is asked instead.

    Args:
        bus: carries the task store's notifications.
        registry: the runs of this process.
        task_store: asked after a gap.
    """

    def __init__(self, bus: Bus, registry: RunRegistry, task_store: TaskStore) -> None:
        self._bus = bus
        self._registry = registry
        self._task_store = task_store
        self._unsubscribe: Callable[[], None] | None = None
        self._work: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to listen."""
        self._unsubscribe = self._bus.subscribe(CHANNEL, self._heard, self._missed)

    async def stop(self) -> None:
        """Stop listening and finish what was begun."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        await asyncio.gather(*self._work)

    def _heard(self, payload: str) -> None:
        self._consider(TaskNotice.parse(payload))

    def _missed(self) -> None:
        self._begin(self._catch_up())

    async def _catch_up(self) -> None:
        held = [*self._registry.held(), *self._registry.waiting()]
        try:
            latest = await self._task_store.latest(held)
        except OperationalError:
            logger.warning("Could not read what was missed; the next gap tries again")
            return
        for notice in latest.values():
            self._consider(notice)

    def _consider(self, notice: TaskNotice) -> None:
        state = TaskState.Value(notice.state)
        if state not in TERMINAL:
            return
        run = self._registry.get(notice.task_id)
        # One that has asked does nothing any more, whether it hears or not.
        if run is not None and not run.ended and (run.hears_channel or run.closed):
            self._begin(self._stop(run, state))
        elif run is None:
            self._begin(self._let_go(notice.task_id, state))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _stop(self, run: Run, state: TaskState) -> None:
        await facts.announce(facts.CancelHeard("channel"), run.origin)
        await run.stop(run.status(state))

    async def _let_go(self, task_id: str, state: TaskState) -> None:
        parked = self._registry.take_parked(task_id)
        if parked is not None:
            event = status(task_id, parked.context_id, state)
            await parked.queue.enqueue_event(event)
