"""Tasks without an end of their own: withheld, parked, overtaken; what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import psycopg
import pytest
from a2a.types import TaskState
from google.adk.agents import LlmAgent
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from billing_agent.a2a import Limits
from billing_agent.executor.outcome import status
from tests.billing_agent.contract.in_process import InProcess
from tests.billing_agent.contract.watch import until
from tests.billing_agent.executor.conftest import Yields, says
from tests.billing_agent.executor.shapes import shapes
from tests.billing_agent.executor.test_continuity import Asks, ask_user
from tests.billing_agent.stores.conftest import (  # noqa: F401
    bus,
    conninfo,
    pool,
    start_bus,
)

pytestmark = pytest.mark.django_db(transaction=True)

WORKING = TaskState.TASK_STATE_WORKING
# Seconds that no test waits for.
NEVER = 3600.0


@pytest.fixture
async def make_replica(pool, bus):  # noqa: F811
    """Return a factory of replicas in this process, see ``InProcess``."""
    async with contextlib.AsyncExitStack() as stack:

        def make(name, agent, limits=None, **config):
            replica = InProcess(name, pool, bus, agent, limits, **config)
            stack.push_async_callback(replica.close)
            return replica

        yield make


def plays(*script):
    return Yields(name="agent", script=list(script), closed=[])


def asks():
    """Return an agent that asks once, then repeats what it was told."""
    tool = LongRunningFunctionTool(ask_user)
    return LlmAgent(name="agent", model=Asks(model="asks", requests=[]), tools=[tool])


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


@pytest.fixture
def row_lock(conninfo):  # noqa: F811
    """Return a block in which a task's row can be read and not be written."""

    @contextlib.asynccontextmanager
    async def row_lock(task_id):
        query = "SELECT FROM billing_agent_a2atask WHERE id = %s FOR UPDATE"
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await connection.execute(query, [task_id])
            yield

    return row_lock


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
        limits = Limits(blocking_wait=2, consumption_wait=consumption_wait)
        replica = make_replica("replica-a", plays(answer), limits)
        running = replica.handler._running

        def asked(task_id):
            waited.set()
            return running(task_id)

        replica.handler._running = asked
        async with asyncio.timeout(30):
            sending = asyncio.create_task(replica.send("hello"))
            task_id = await until(lambda: _working(replica))
            async with row_lock(task_id):
                go.set()
                await waited.wait()
                assert len(replica.registry) == 0
                yield replica, sending
            await until(lambda: _completed(replica, task_id))

    return unconsumed


async def _working(replica):
    for task_id in replica.registry.held():
        found = await replica.store.get(task_id, replica.call())
        if found and found.task.status.state == WORKING:
            return task_id
    return None


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
