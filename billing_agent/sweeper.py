"""The sweeper: fails tasks that say they run while nobody runs them."""

from __future__ import annotations

import asyncio
import logging

from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from billing_agent.executor.outcome import Failure
from billing_agent.executor.registry import RunRegistry
from billing_agent.stores.pool import Pool
from billing_agent.stores.tasks import StuckTask, TaskStore

logger = logging.getLogger(__name__)

# Any constant that nothing else in this database locks.
_LOCK = 8812_44


class Abandoned(Exception):
    """A task outlived the run timeout and no replica runs it."""

    def __init__(self, stuck: StuckTask) -> None:
        super().__init__(f"task {stuck.task.id} of {stuck.replica or 'no replica'}")
        self.stuck = stuck


class Sweeper:
    """Tells which runs live here, and fails the tasks nobody runs any more.

    Every replica sweeps; an advisory lock lets one at a time. A run that lives has a
    heartbeat, so it is never swept.

    Args:
        pool: for the lock.
        task_store: where tasks and heartbeats are.
        registry: the runs of this process.
        run_timeout: seconds after which a task without a live run is failed.
        interval: seconds between two rounds.
    """

    def __init__(
        self,
        pool: Pool,
        task_store: TaskStore,
        registry: RunRegistry,
        *,
        run_timeout: float,
        interval: float,
    ) -> None:
        self._pool = pool
        self._task_store = task_store
        self._registry = registry
        self._run_timeout = run_timeout
        self._interval = min(interval, run_timeout / 3)

    async def run(self) -> None:
        """Heartbeat and sweep for ever; a database that is away is waited for."""
        while True:
            try:
                await self._task_store.heartbeat(self._registry.held())
                await self.sweep()
            except (OperationalError, PoolTimeout) as error:
                logger.warning("The sweep waits for the database: %s", error)
            await asyncio.sleep(self._interval)

    async def sweep(self) -> int:
        """Fail the stuck tasks; return how many, 0 while another replica sweeps."""
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT pg_try_advisory_lock(%s)", [_LOCK]
            )
            row = await cursor.fetchone()
            if not (row and row[0]):
                return 0
            try:
                stuck = await self._task_store.stuck(self._run_timeout)
                return sum([await self._fail(task) for task in stuck])
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])

    async def _fail(self, stuck: StuckTask) -> bool:
        failure = Failure(Abandoned(stuck))
        status = failure.status(stuck.task.id, stuck.task.context_id)
        failed = await self._task_store.fail(stuck, status)
        if failed:
            failure.log()
        return failed
