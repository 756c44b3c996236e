"""The sweeper: fails tasks that say they run while nobody runs them."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable

from psycopg import OperationalError

from billing_agent.executor.outcome import Failure
from billing_agent.executor.registry import RunRegistry
from billing_agent.stores.pool import Pool
from billing_agent.stores.sends import Sends
from billing_agent.stores.tasks import StuckTask, TaskStore
from billing_agent.stores.turns import Turns

logger = logging.getLogger(__name__)

# Any constant that nothing else in this database locks.
_LOCK = 8812_44
# Seconds a first send is remembered: a repeat that comes later is a new message.
REMEMBERED = 24 * 3600.0
_GOING_ON = frozenset({"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"})


class Abandoned(Exception):
    """A task says that it runs and no replica runs it."""

    def __init__(self, stuck: StuckTask) -> None:
        super().__init__(f"task {stuck.task.id} of {stuck.replica or 'no replica'}")
        self.stuck = stuck


class Sweeper:
    """Tells which runs live here, and fails the tasks nobody runs any more.

    Every replica sweeps; an advisory lock lets one at a time. A run that lives has a
    heartbeat, so it is never swept. A task whose run ended here without its end being
    stored, the database was away then, does not wait for the timeout: nobody else can
    know of it.

    Args:
        pool: for the lock.
        task_store: where tasks and heartbeats are.
        registry: the runs of this process.
        replica: the name of this replica; empty for a process that runs nothing.
        run_timeout: seconds after which a task without a live run is failed.
        interval: seconds between two rounds.
    """

    def __init__(
        self,
        pool: Pool,
        task_store: TaskStore,
        registry: RunRegistry,
        *,
        replica: str = "",
        run_timeout: float,
        interval: float,
    ) -> None:
        self._pool = pool
        self._task_store = task_store
        self._registry = registry
        self._replica = replica
        self._run_timeout = run_timeout
        self._interval = min(interval, run_timeout / 3)

    async def run(self) -> None:
        """Heartbeat and sweep for ever, whatever becomes of a round."""
        while True:
            try:
                await self._task_store.heartbeat(self._registry.held())
                await self.sweep()
            except OperationalError as error:
                logger.warning("The sweep waits for the database: %s", error)
            except Exception:
                logger.exception("A round of the sweep failed")
            await asyncio.sleep(self._interval)

    async def inherit(self, turns: Turns) -> None:
        """Fail what an earlier process of this replica's name left; hold the name.

        A process has its name as long as it lives, like the turn of a conversation
        that is nobody's. So whoever has it knows that an earlier process has ended,
        drained or killed, and a caller that waits for a task of that process need not
        wait for the timeout.
        """
        while True:
            try:
                async with turns.turn("", self._replica, math.inf):
                    while await self._fail_all(await self._left()):
                        pass
                    await asyncio.Event().wait()
            except OperationalError as error:
                logger.warning("The name waits for the database: %s", error)
            except Exception:
                logger.exception("What an earlier process left is not failed yet")
            await asyncio.sleep(self._interval)

    async def _left(self) -> list[StuckTask]:
        """Return what goes on under this replica's name and never ran here."""
        known = {*self._registry.held(), *self._registry.ended(0)}
        going_on = await self._task_store.stuck(0, replica=self._replica)
        return [stuck for stuck in going_on if stuck.task.id not in known]

    async def sweep(self) -> int:
        """Fail the stuck tasks; return how many, 0 while another replica sweeps.

        Sends older than a day are forgotten on the way.
        """
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT pg_try_advisory_lock(%s)", [_LOCK]
            )
            row = await cursor.fetchone()
            if not (row and row[0]):
                return 0
            try:
                stuck = [
                    *await self._task_store.stuck(self._run_timeout),
                    *await self._left_behind(),
                ]
                await Sends(self._pool).sweep(REMEMBERED)
                return await self._fail_all(stuck)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])

    async def _left_behind(self) -> list[StuckTask]:
        """Return the tasks whose runs ended here while their rows go on."""
        seconds = 2 * self._interval
        ended = self._registry.ended(seconds)
        latest = await self._task_store.latest(ended) if ended else {}
        going_on = {key for key, now in latest.items() if now.state in _GOING_ON}
        self._registry.forget(ended - going_on)
        silent = await self._task_store.stuck(seconds) if going_on else []
        return [stuck for stuck in silent if stuck.task.id in going_on]

    async def _fail_all(self, stuck: Iterable[StuckTask]) -> int:
        return sum([await self._fail(task) for task in stuck])

    async def _fail(self, stuck: StuckTask) -> bool:
        failure = Failure(Abandoned(stuck))
        status = failure.status(stuck.task.id, stuck.task.context_id)
        failed = await self._task_store.fail(stuck, status)
        if failed:
            failure.log()
        return failed
