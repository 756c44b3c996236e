"""What the sweeper fails and what it never touches, on real PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import re

import psycopg
import pytest
from a2a.server.cluster import TaskVersion
from a2a.types import TaskState

from billing_agent.executor.outcome import status, submitted
from billing_agent.executor.registry import Run, RunRegistry
from billing_agent.facts import Origin
from billing_agent.stores.pool import open_pool
from billing_agent.stores.tasks import TaskStore
from billing_agent.sweeper import Sweeper
from tests.billing_agent.executor.conftest import Collected, request
from tests.billing_agent.stores.conftest import conninfo, start_bus  # noqa: F401
from tests.billing_agent.stores.test_turns import start_turns  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.statement(44)]

RUN_TIMEOUT = 60.0
FAILED = r"^Agent execution failed\. \(error_id: ([0-9a-f]{12})\)$"


class Replica:
    """A replica as far as sweeping goes: a store, its runs and a sweeper."""

    def __init__(self, name, pool, conninfo):  # noqa: F811
        self.store = TaskStore(pool, name)
        self.registry = RunRegistry()
        self.pool = pool
        self._conninfo = conninfo
        self.sweeper = Sweeper(
            pool,
            self.store,
            self.registry,
            replica=name,
            run_timeout=RUN_TIMEOUT,
            interval=0.05,
        )

    async def begin(self, task_id, state=TaskState.TASK_STATE_WORKING):
        """Store a task and hold its run, as ``execute`` does."""
        context = request(task_id=task_id)
        task = submitted(task_id, "ctx-41", context.message)
        task.status.CopyFrom(status(task_id, "ctx-41", state).status)
        missing = TaskVersion.MISSING
        call = context.call_context
        await self.store.save(task, prev_version=missing, context=call)
        origin = Origin("replica-a", "workshop", "ctx-41", task_id)
        run = Run(task_id, "ctx-41", Collected(), origin)
        self.registry.register(run)
        return run

    async def go_on(self, task_id):
        """Store that the task works on, as a follow-up does first."""
        call = request().call_context
        found = await self.store.get(task_id, call)
        await self.store.save(found.task, prev_version=found.version, context=call)

    async def state(self, task_id):
        return (await self.stored(task_id)).status.state

    async def stored(self, task_id):
        found = await self.store.get(task_id, request().call_context)
        return found.task

    async def age(self, task_id, seconds):
        """Make a task's row, and what was heard of it, older than it is."""
        async with await psycopg.AsyncConnection.connect(
            self._conninfo, autocommit=True
        ) as connection:
            await connection.execute(
                "UPDATE billing_agent_a2atask SET"
                " updated_at = updated_at - make_interval(secs => %s),"
                " heartbeat_at = heartbeat_at - make_interval(secs => %s)"
                " WHERE id = %s",
                (seconds, seconds, task_id),
            )

    @contextlib.asynccontextmanager
    async def sweeping(self):
        """Let the sweeper go on until the block is left."""
        task = asyncio.create_task(self.sweeper.run())
        try:
            yield
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.fixture
async def replicas(conninfo):  # noqa: F811
    async with contextlib.AsyncExitStack() as stack:

        async def make(name):
            pool = await open_pool(conninfo, 4)
            stack.push_async_callback(pool.close)
            return Replica(name, pool, conninfo)

        yield await make("replica-a"), await make("replica-b")


async def _rounds(sweeper, monkeypatch, count=3):
    """Wait until a running sweeper has gone through some rounds."""
    done = asyncio.Semaphore(0)
    sweep = sweeper.sweep

    async def counted():
        try:
            return await sweep()
        finally:
            done.release()

    monkeypatch.setattr(sweeper, "sweep", counted)
    async with asyncio.timeout(10):
        for _ in range(count):
            await done.acquire()


@pytest.mark.parametrize(
    "state", [TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]
)
async def test_a_run_that_lives_is_never_swept_however_old_its_row(
    replicas, monkeypatch, state
):
    a, b = replicas
    await a.begin("task-1", state)
    await a.store.heartbeat(["task-1"])
    async with a.sweeping(), b.sweeping():
        await _rounds(a.sweeper, monkeypatch)
        # Only the save is old: the heart goes on beating.
        await _old_save(a, "task-1")
        await _rounds(b.sweeper, monkeypatch)

    assert await a.state("task-1") == state


async def _old_save(replica, task_id):
    async with replica.pool.connection() as connection:
        await connection.execute(
            "UPDATE billing_agent_a2atask"
            " SET updated_at = now() - interval '1 day' WHERE id = %s",
            [task_id],
        )


async def test_a_run_that_nobody_holds_is_failed_by_one_replica_once(replicas, caplog):
    a, b = replicas
    run = await a.begin("task-1")
    a.registry.release(run, parked=False)
    await a.age("task-1", RUN_TIMEOUT + 1)

    swept = await asyncio.gather(*(r.sweeper.sweep() for r in (a, b) * 4))

    assert sum(swept) == 1
    task = await b.stored("task-1")
    assert task.status.state == TaskState.TASK_STATE_FAILED
    (part,) = task.status.message.parts
    error_id = re.match(FAILED, part.text).group(1)
    assert [r.levelname for r in caplog.records if error_id in r.getMessage()] == [
        "ERROR"
    ]
    assert "Abandoned" not in part.text


async def test_a_parked_task_is_never_swept(replicas):
    a, b = replicas
    run = await a.begin("task-1", TaskState.TASK_STATE_INPUT_REQUIRED)
    a.registry.release(run, parked=False)
    await a.age("task-1", 100 * RUN_TIMEOUT)

    assert await b.sweeper.sweep() == 0


async def test_a_task_saved_while_it_is_swept_is_left_alone(replicas, caplog):
    a, b = replicas
    run = await a.begin("task-1")
    a.registry.release(run, parked=False)
    await a.age("task-1", RUN_TIMEOUT + 1)
    (stuck,) = await b.store.stuck(RUN_TIMEOUT)

    await a.store.heartbeat(["task-1"])

    event = status("task-1", "ctx-41", TaskState.TASK_STATE_FAILED)
    assert not await b.store.fail(stuck, event)
    assert await b.sweeper._fail_all([stuck]) == 0
    assert await a.state("task-1") == TaskState.TASK_STATE_WORKING
    assert "Runner failed" not in caplog.text


async def test_a_run_that_ended_here_without_its_end_stored_waits_for_no_timeout(
    replicas,
):
    a, b = replicas
    run, other = await a.begin("task-1"), await a.begin("task-2")
    a.registry.release(run, parked=False)
    a.registry.release(other, parked=False)
    # A follow-up runs on the other replica by now.
    await b.go_on("task-2")
    await a.age("task-1", 1)

    assert await b.sweeper.sweep() == 0
    async with a.sweeping(), b.sweeping(), asyncio.timeout(10):
        b.registry.register(other)
        # What has been settled is forgotten.
        while a.registry.ended(0) != {"task-2"}:
            await asyncio.sleep(0.01)

    assert await a.state("task-1") == TaskState.TASK_STATE_FAILED
    assert await a.state("task-2") == TaskState.TASK_STATE_WORKING


async def test_what_an_earlier_process_left_is_failed_once_it_has_ended(
    replicas,
    start_turns,  # noqa: F811
):
    """One that drains still has the name; a follow-up elsewhere has another."""
    a, b = replicas
    for task_id in ("left", "taken-over"):
        await a.begin(task_id)
    await b.go_on("taken-over")
    restarted = Replica("replica-a", b.pool, b._conninfo)
    earlier, later = await start_turns(), await start_turns()
    async with asyncio.timeout(10):
        async with earlier.turn("", "replica-a", 1):
            inheriting = asyncio.create_task(restarted.sweeper.inherit(later))
            while not later._heads:
                await asyncio.sleep(0.01)
            assert await b.state("left") == TaskState.TASK_STATE_WORKING
        while await b.state("left") != TaskState.TASK_STATE_FAILED:
            await asyncio.sleep(0.01)
    inheriting.cancel()

    assert await b.state("taken-over") == TaskState.TASK_STATE_WORKING


async def test_a_process_inherits_nothing_that_ran_here(replicas, start_turns):  # noqa: F811
    a, b = replicas
    await a.begin("running")
    ended = await a.begin("its-end-is-on-its-way")
    a.registry.release(ended, parked=False)
    await Replica("replica-a", b.pool, b._conninfo).begin("left")
    inheriting = asyncio.create_task(a.sweeper.inherit(await start_turns()))
    async with asyncio.timeout(10):
        while await b.state("left") != TaskState.TASK_STATE_FAILED:
            await asyncio.sleep(0.01)
    inheriting.cancel()

    for task_id in ("running", "its-end-is-on-its-way"):
        assert await b.state(task_id) == TaskState.TASK_STATE_WORKING


async def test_an_inheritance_that_fails_is_tried_again_and_logged(
    replicas,
    start_turns,  # noqa: F811
    caplog,
):
    a, b = replicas
    await a.begin("left")
    restarted = Replica("replica-a", b.pool, b._conninfo)
    async with a.pool.connection() as connection, asyncio.timeout(10):
        await connection.execute("ALTER TABLE billing_agent_a2atask RENAME TO away")
        inheriting = asyncio.create_task(restarted.sweeper.inherit(await start_turns()))
        while "What an earlier process left is not failed yet" not in caplog.text:
            await asyncio.sleep(0.01)
        await connection.execute("ALTER TABLE away RENAME TO billing_agent_a2atask")
        while await b.state("left") != TaskState.TASK_STATE_FAILED:
            await asyncio.sleep(0.01)
    inheriting.cancel()


async def test_a_round_that_fails_is_not_the_last(replicas, monkeypatch, caplog):
    a, _ = replicas
    run = await a.begin("task-1")
    a.registry.release(run, parked=False)
    await a.age("task-1", RUN_TIMEOUT + 1)
    async with a.pool.connection() as connection:
        await connection.execute("ALTER TABLE billing_agent_a2atask RENAME TO away")
        async with a.sweeping():
            await _rounds(a.sweeper, monkeypatch)
            await connection.execute("ALTER TABLE away RENAME TO billing_agent_a2atask")
            async with asyncio.timeout(10):
                while await a.state("task-1") != TaskState.TASK_STATE_FAILED:
                    await asyncio.sleep(0.01)
    assert "A round of the sweep failed" in caplog.text
