"""Ends a replica's runs before its process does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from psycopg import OperationalError

from billing_agent.executor.outcome import Failure
from billing_agent.executor.registry import Run
from billing_agent.stores.tasks import TaskStore


class DrainTimeout(Exception):
    """A run did not end within the grace period of a shutdown."""


async def drain(runs: Sequence[Run], grace: float) -> None:
    """Wait for runs to end; fail those that still go on after ``grace`` seconds."""
    ended = {run.task for run in runs if run.task is not None}
    if not ended:
        return
    _, late = await asyncio.wait(ended, timeout=grace)
    for run in runs:
        if run.task in late:
            failure = Failure(DrainTimeout(f"{run.task_id} after {grace:g} s"))
            failure.log()
            await run.stop(failure.status(run.task_id, run.context_id))


async def until_stored(
    task_store: TaskStore, task_ids: Sequence[str], wait: float
) -> None:
    """Wait until the last events of ended runs are stored, ``wait`` seconds at most."""
    moving = {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    with suppress(TimeoutError, OperationalError):
        async with asyncio.timeout(wait):
            # Nothing else tells when a2a-sdk has stored what it was given.
            while any(  # noqa: ASYNC110
                notice.state in moving
                for notice in (await task_store.latest(task_ids)).values()
            ):
                await asyncio.sleep(0.02)
