"""Ends a replica's runs before its process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from psycopg import OperationalError

from billing_agent.executor.outcome import Failure
from billing_agent.executor.registry import RunRegistry
from billing_agent.stores.tasks import TaskStore

# Seconds between two looks.
_PAUSE = 0.02


class DrainTimeout(Exception):
    """A run did not end within the grace period of a shutdown."""


async def drain(registry: RunRegistry, owes: Callable[[], bool], grace: float) -> None:
    """Wait for runs to end; fail those that still go on after ``grace`` seconds.

    Args:
        registry: the runs.
        owes: says whether a request that came before may still begin one.
        grace: seconds.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(grace):
            # Runs come and go in between.
            while owes() or len(registry):  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE)
    for run in registry.runs():
        if run.closed:
            continue
        failure = Failure(DrainTimeout(f"{run.task_id} after {grace:g} s"))
        failure.log()
        await run.stop(failure.status(run.task_id, run.context_id))


async def until_stored(
    task_store: TaskStore, registry: RunRegistry, wait: float
) -> None:
    """Wait until the last events of ended runs are stored, ``wait`` seconds at most."""
    moving = {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    task_ids = {*registry.held(), *registry.ended(0)}
    with suppress(TimeoutError, OperationalError):
        async with asyncio.timeout(wait):
            # Nothing else tells when a2a-sdk has stored what it was given.
            while any(  # noqa: ASYNC110
                notice.state in moving
                for notice in (await task_store.latest(task_ids)).values()
            ):
                await asyncio.sleep(_PAUSE)
