"""Runs whose end is withheld, or not stored yet: what the caller gets."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest
from a2a.types import TaskState

from billing_agent.a2a import Limits
from tests.billing_agent.contract.in_process import NEVER, plays, working
from tests.billing_agent.contract.watch import until
from tests.billing_agent.executor.conftest import says

pytestmark = pytest.mark.django_db(transaction=True)

WORKING = TaskState.TASK_STATE_WORKING


async def _raise(context, final):
    raise LookupError("hook")


async def _withhold(context, final):
    return None


@pytest.mark.statement(23)
@pytest.mark.parametrize("now", [False, True])
@pytest.mark.parametrize(
    ("hook", "level"), [(_withhold, logging.WARNING), (_raise, logging.ERROR)]
)
async def test_a_task_without_an_end_stays_working_and_its_send_returns(
    make_replica, caplog, hook, level, now
):
    limits = Limits(blocking_wait=NEVER, consumption_wait=NEVER)
    replica = make_replica("replica-a", plays(says("hi")), limits, after_execute=hook)

    async with asyncio.timeout(20):
        task = await replica.send("hello", now=now)
        await until(lambda: _has_artifact(replica, task.id))

    stored = await replica.stored(task.id)
    assert stored.status.state == WORKING
    assert len(replica.registry) == 0
    ours = [row for row in caplog.records if row.name.startswith("billing_agent")]
    assert [row.levelno for row in ours] == [level]
    if not now:
        assert task.status.state == WORKING


async def _has_artifact(replica, task_id):
    return len((await replica.stored(task_id)).artifacts) == 1


@pytest.fixture
async def unconsumed(make_replica, row_lock):
    """Return a block: a run has ended, its send waits, its events are not stored."""

    @contextlib.asynccontextmanager
    async def unconsumed(consumption_wait):
        go, waited = asyncio.Event(), asyncio.Event()

        async def answer(ctx):
            await go.wait()
            return says("hi")

        # Time enough for the run to end in.
        limits = Limits(blocking_wait=4, consumption_wait=consumption_wait)
        replica = make_replica("replica-a", plays(answer), limits)
        running = replica.handler._running

        def asked(task_id):
            waited.set()
            return running(task_id)

        replica.handler._running = asked
        async with asyncio.timeout(30):
            sending = asyncio.create_task(replica.send("hello"))
            task_id = await until(lambda: working(replica))
            async with row_lock(task_id):
                go.set()
                await waited.wait()
                assert len(replica.registry) == 0
                yield replica, sending
            await until(lambda: _completed(replica, task_id))

    return unconsumed


async def _completed(replica, task_id):
    state = (await replica.stored(task_id)).status.state
    return state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.statement(45)
async def test_a_blocking_send_waits_for_the_events_of_a_run_that_has_ended(unconsumed):
    async with unconsumed(NEVER) as (_, sending):
        await asyncio.wait({sending}, timeout=0.1)
        assert not sending.done()

    assert (await sending).status.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.statement(45)
async def test_a_blocking_send_waits_for_events_no_longer_than_its_bound(unconsumed):
    async with unconsumed(0.05) as (_, sending):
        assert (await sending).status.state == WORKING
