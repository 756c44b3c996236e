"""Tasks held here that another replica ends: what their holders do."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import TaskState

from billing_agent.a2a import Limits
from billing_agent.executor.outcome import status
from tests.billing_agent.contract.in_process import NEVER, asks, plays, working
from tests.billing_agent.contract.watch import until
from tests.billing_agent.executor.conftest import says
from tests.billing_agent.executor.shapes import shapes

pytestmark = pytest.mark.django_db(transaction=True)

WORKING = TaskState.TASK_STATE_WORKING


async def _cancel(here, there, task_id):
    await there.cancel(task_id)


async def _answer(here, there, task_id):
    assert (await there.send("answer", task_id=task_id)).status.state != WORKING


async def _sweep(here, there, task_id):
    """Fail the task as a sweeper does when the replica that took it over died."""
    found = await there.store.get(task_id, there.call())
    working = status(task_id, found.task.context_id, WORKING)
    found.task.status.CopyFrom(working.status)
    await there.store.save(
        found.task, event=working, prev_version=found.version, context=there.call()
    )
    (stuck,) = await there.store.stuck(0)
    failed = status(
        task_id, stuck.task.context_id, TaskState.TASK_STATE_FAILED, "opaque"
    )
    assert await there.store.fail(stuck, failed)


@pytest.mark.statement(44)
@pytest.mark.parametrize(
    ("end", "state"),
    [
        (_cancel, TaskState.TASK_STATE_CANCELED),
        (_answer, TaskState.TASK_STATE_COMPLETED),
        (_sweep, TaskState.TASK_STATE_FAILED),
    ],
    ids=["canceled", "answered", "swept"],
)
async def test_a_task_parked_here_and_ended_elsewhere_ends_here_too(
    make_replica, end, state
):
    limits = Limits(parked_timeout=NEVER)
    here = make_replica("replica-a", asks(), limits)
    there = make_replica("replica-b", asks(), limits)
    task = await here.send("hello")
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert await here.holds(task.id)

    async with asyncio.timeout(20), here.subscribe(task.id) as events:
        assert shapes([await anext(events)]) == ["Task"]
        await end(here, there, task.id)
        rest = [event async for event in events]
    async with asyncio.timeout(20):
        while await here.holds(task.id):
            await asyncio.sleep(0.01)

    assert rest[-1].status.state == state
    assert here.registry.waiting() == []
    assert (await here.stored(task.id)).status.state == state


@pytest.mark.statement(34)
async def test_a_run_canceled_while_its_replica_heard_nothing_is_stopped_later(
    make_replica, deaf
):
    async def think(ctx):
        await asyncio.Event().wait()

    own, hears_nothing = deaf
    agent = plays(think, says("never"))
    here, there = (
        make_replica("replica-a", agent, bus=own),
        make_replica("replica-b", plays()),
    )
    async with asyncio.timeout(20):
        task = await here.send("hello", now=True)
        await until(lambda: working(here))
        async with hears_nothing():
            await there.cancel(task.id)
            assert task.id in here.registry
        while task.id in here.registry:
            await asyncio.sleep(0.01)

    assert agent.closed == [True]
    stored = await there.stored(task.id)
    assert stored.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.statement(44)
async def test_a_task_ended_elsewhere_while_its_replica_heard_nothing_is_let_go_later(
    make_replica, deaf
):
    own, hears_nothing = deaf
    limits = Limits(parked_timeout=NEVER)
    here = make_replica("replica-a", asks(), limits, bus=own)
    there = make_replica("replica-b", asks())
    task = await here.send("hello")

    async with asyncio.timeout(20):
        async with hears_nothing():
            await there.cancel(task.id)
            assert await here.holds(task.id)
        while await here.holds(task.id):
            await asyncio.sleep(0.01)

    assert here.registry.waiting() == []


@pytest.mark.statement(44)
async def test_a_task_that_stays_parked_is_let_go_after_a_while(make_replica):
    here = make_replica("replica-a", asks(), Limits(parked_timeout=0.05))

    task = await here.send("hello")

    async with asyncio.timeout(20):
        while await here.holds(task.id):
            await asyncio.sleep(0.01)
    parked = await here.stored(task.id)
    assert parked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    answered = await here.send("answer", task_id=task.id)
    assert answered.status.state == TaskState.TASK_STATE_COMPLETED
