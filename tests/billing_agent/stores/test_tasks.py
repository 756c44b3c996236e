from __future__ import annotations

import asyncio
import json

import pytest
from a2a.auth.user import User
from a2a.server.cluster import ConcurrentTaskModificationError, TaskVersion
from a2a.server.context import ServerCallContext
from a2a.types import (
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from psycopg import sql

from billing_agent.stores.tasks import CHANNEL, TaskNotice, TaskStore, begin

AWKWARD = 'Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne "\\ \t'

SUBMITTED = TaskState.TASK_STATE_SUBMITTED
WORKING = TaskState.TASK_STATE_WORKING
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED
COMPLETED = TaskState.TASK_STATE_COMPLETED
CANCELED = TaskState.TASK_STATE_CANCELED
FAILED = TaskState.TASK_STATE_FAILED
REJECTED = TaskState.TASK_STATE_REJECTED
TERMINAL = [COMPLETED, CANCELED, FAILED, REJECTED]


class Named(User):
    def __init__(self, name):
        self._name = name

    @property
    def is_authenticated(self):
        return True

    @property
    def user_name(self):
        return self._name


MINE = ServerCallContext(user=Named("client-1"))
THEIRS = ServerCallContext(user=Named("client-2"))


def a_task(state=SUBMITTED, task_id="t1", text="hi", **fields):
    message = Message(message_id="m1", parts=[Part(text=text)])
    return Task(
        id=task_id,
        context_id=fields.pop("context_id", "ctx-41"),
        status=TaskStatus(state=state),
        history=[message],
        **fields,
    )


def status_event(state, task_id="t1"):
    status = TaskStatus(state=state)
    return TaskStatusUpdateEvent(task_id=task_id, context_id="ctx-41", status=status)


@pytest.fixture
def store(pool):
    return TaskStore(pool, "replica-a")


@pytest.fixture
def save(store):
    async def save(task, version=TaskVersion.MISSING, event=None, context=MINE):
        return await store.save(
            task, event=event, prev=None, prev_version=version, context=context
        )

    return save


@pytest.fixture
def query(pool):
    async def query(text, *parameters):
        async with pool.connection() as connection:
            return await (await connection.execute(text, parameters)).fetchall()

    return query


async def stored_state(store, task_id="t1"):
    stored = await store.get(task_id, MINE)
    return TaskState.Name(stored.task.status.state).removeprefix("TASK_STATE_")


# Saving and reading


@pytest.mark.case(5)
async def test_a_task_comes_back_as_it_was_saved(store, save):
    task = a_task(text=AWKWARD)
    task.metadata.update({AWKWARD: [1.5, None, AWKWARD]})
    version = await save(task)
    stored = await store.get("t1", MINE)
    assert (stored.task, stored.version) == (task, version)
    assert await store.get("t2", MINE) is None


async def test_an_id_made_in_a_call_is_read_again_after_its_first_save(store):
    context = ServerCallContext(user=Named("client-1"))
    begin(context, "t1")
    assert await store.get("t1", context) is None

    version = await store.save(
        a_task(), prev_version=TaskVersion.MISSING, context=context
    )

    assert (await store.get("t1", context)).version == version


async def test_an_id_made_in_one_call_is_read_in_every_other(store, save):
    await save(a_task())
    context = ServerCallContext(user=Named("client-1"))
    begin(context, "another")

    assert (await store.get("t1", context)).task.id == "t1"


async def test_each_save_is_a_later_version(store, save):
    first = await save(a_task())
    second = await save(a_task(WORKING), first)
    assert second.is_after(first)
    assert first.is_after(TaskVersion.MISSING)
    assert (await store.get("t1", MINE)).version == second


async def test_a_stale_save_is_refused_and_changes_nothing(store, save, query):
    first = await save(a_task(), event=a_task())
    await save(a_task(WORKING), first)
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(INPUT_REQUIRED), first, status_event(INPUT_REQUIRED))
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task())
    assert await stored_state(store) == "WORKING"
    events = await query("SELECT version FROM billing_agent_a2ataskevent")
    assert events == [(1,)]


async def test_saving_over_a_task_that_is_not_there_is_refused(save):
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(WORKING), TaskVersion(1))


async def test_the_event_and_the_notice_come_with_the_save(
    save, query, bus, eventually
):
    heard, ready = [], asyncio.Event()
    bus.subscribe(CHANNEL, heard.append, ready.set)
    await ready.wait()

    first = await save(a_task(), event=a_task())
    second = await save(a_task(WORKING), first)
    await save(a_task(COMPLETED), second, status_event(COMPLETED))

    await eventually(lambda: len(heard) == 3)
    assert [TaskNotice.parse(payload) for payload in heard] == [
        TaskNotice("t1", 1, "TASK_STATE_SUBMITTED"),
        TaskNotice("t1", 2, "TASK_STATE_WORKING"),
        TaskNotice("t1", 3, "TASK_STATE_COMPLETED"),
    ]
    events = await query("SELECT version, body FROM billing_agent_a2ataskevent")
    assert [
        (version, StreamResponse.FromString(body).WhichOneof("payload"))
        for version, body in events
    ] == [(1, "task"), (3, "status_update")]


# Owners


async def test_another_owners_task_is_unknown(store, save):
    version = await save(a_task())
    assert await store.get("t1", THEIRS) is None
    assert await store.context_of("t1", "client-2") is None
    assert await store.context_of("t1", "client-1") == "ctx-41"
    await store.delete("t1", THEIRS)
    assert (await store.get("t1", MINE)).version == version


@pytest.mark.parametrize("state", [SUBMITTED, WORKING, CANCELED, COMPLETED])
async def test_another_owners_task_cannot_be_written(store, save, state):
    version = await save(a_task())
    for claimed in (version, TaskVersion.MISSING):
        with pytest.raises(ConcurrentTaskModificationError):
            await save(a_task(state), claimed, context=THEIRS)
    assert await stored_state(store) == "SUBMITTED"


# Terminal states


@pytest.mark.parametrize("first", TERMINAL)
@pytest.mark.parametrize("then", [WORKING, INPUT_REQUIRED, *TERMINAL])
async def test_a_terminal_state_never_changes_even_at_the_right_version(
    store, save, first, then
):
    version = await save(a_task(first) if first != CANCELED else a_task())
    if first == CANCELED:
        version = await save(a_task(CANCELED), version)
    before = await store.get("t1", MINE)
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(then, text="changed"), version, status_event(then))
    assert await store.get("t1", MINE) == before


@pytest.mark.statement(34)
async def test_a_cancel_wins_whatever_the_version_is(store, save):
    first = await save(a_task())
    working = await save(a_task(WORKING), first)
    canceled = await save(a_task(CANCELED), first, status_event(CANCELED))
    assert canceled.is_after(working)
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(COMPLETED), working, status_event(COMPLETED))
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(COMPLETED), canceled)
    assert await stored_state(store) == "CANCELED"


async def test_a_cancel_from_an_old_reading_keeps_what_was_saved_since(
    store, save, query
):
    first = await save(a_task())
    newer = a_task(WORKING, artifacts=[Artifact(artifact_id="a1")])
    await save(newer, first)

    stale = a_task(CANCELED)
    await save(stale, first, stale)

    stored = (await store.get("t1", MINE)).task
    assert stored.status.state == CANCELED
    assert [artifact.artifact_id for artifact in stored.artifacts] == ["a1"]
    ((body,),) = await query("SELECT body FROM billing_agent_a2ataskevent")
    assert StreamResponse.FromString(body).task == stored


async def test_a_cancel_of_nothing_is_refused(save):
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(CANCELED))
    with pytest.raises(ConcurrentTaskModificationError):
        await save(a_task(CANCELED), TaskVersion(3))


# Many at once


async def test_of_fifty_first_saves_one_wins(save):
    outcomes = await asyncio.gather(
        *(save(a_task(text=str(n))) for n in range(50)), return_exceptions=True
    )
    won = [outcome for outcome in outcomes if isinstance(outcome, TaskVersion)]
    assert won == [TaskVersion(1)]
    lost = {type(outcome) for outcome in outcomes} - {TaskVersion}
    assert lost == {ConcurrentTaskModificationError}


async def test_fifty_writers_never_lose_an_update(store, save, query):
    await save(a_task())

    async def add(number):
        while True:
            stored = await store.get("t1", MINE)
            stored.task.history.append(Message(message_id=str(number)))
            try:
                return await save(stored.task, stored.version, stored.task)
            except ConcurrentTaskModificationError:
                continue

    versions = await asyncio.gather(*(add(number) for number in range(50)))

    stored = await store.get("t1", MINE)
    assert len(stored.task.history) == 51
    assert {version._value for version in versions} == set(range(2, 52))
    events = await query("SELECT count(*) FROM billing_agent_a2ataskevent")
    assert events == [(50,)]


@pytest.mark.statement(34)
async def test_a_cancel_among_fifty_writers_ends_the_task_for_good(
    store, save, eventually
):
    await save(a_task())
    after_cancel = []

    async def write():
        while True:
            stored = await store.get("t1", MINE)
            if stored.task.status.state == CANCELED:
                return
            stored.task.status.state = WORKING
            try:
                version = await save(stored.task, stored.version)
            except ConcurrentTaskModificationError:
                continue
            after_cancel.append(version)

    async def cancel():
        first = await store.get("t1", MINE)
        await eventually(lambda: len(after_cancel) >= 20)
        first.task.status.state = CANCELED
        return await save(first.task, first.version)

    canceled, *_ = await asyncio.gather(cancel(), *(write() for _ in range(50)))

    assert await stored_state(store) == "CANCELED"
    assert all(canceled.is_after(version) for version in after_cancel)


async def test_of_many_terminal_states_at_once_one_stays(store, save):
    version = await save(a_task(WORKING))
    states = TERMINAL * 5
    outcomes = await asyncio.gather(
        *(save(a_task(state), version) for state in states), return_exceptions=True
    )
    winners = [
        TaskState.Name(state)
        for state, outcome in zip(states, outcomes, strict=True)
        if isinstance(outcome, TaskVersion)
    ]
    assert winners == [f"TASK_STATE_{await stored_state(store)}"]


# Deleting and reading on the side


async def test_deleting_takes_the_events_too(store, save, query):
    await save(a_task(), event=a_task())
    await store.delete("t1", MINE)
    await store.delete("t1", MINE)
    assert await store.get("t1", MINE) is None
    assert await query("SELECT count(*) FROM billing_agent_a2ataskevent") == [(0,)]


async def test_the_latest_state_is_read_without_an_owner(store, save):
    first = await save(a_task())
    await save(a_task(COMPLETED), first)
    await save(a_task(task_id="t2"), context=THEIRS)
    assert await store.latest(name for name in ["t1", "t2", "t3"]) == {
        "t1": TaskNotice("t1", 2, "TASK_STATE_COMPLETED"),
        "t2": TaskNotice("t2", 1, "TASK_STATE_SUBMITTED"),
    }


def test_a_notice_is_read_from_its_payload():
    payload = json.dumps({"task_id": "é", "version": 3, "state": "TASK_STATE_FAILED"})
    assert TaskNotice.parse(payload) == TaskNotice("é", 3, "TASK_STATE_FAILED")


# The sweeper's evidence


@pytest.fixture
def age(query):
    """Make rows look older than they are; no test waits."""

    async def age(column, task_id="t1", seconds=100):
        text = sql.SQL(
            "UPDATE billing_agent_a2atask SET {} = now() - make_interval(secs => %s)"
            " WHERE id = %s RETURNING 1"
        )
        await query(text.format(sql.Identifier(column)), seconds, task_id)

    return age


@pytest.mark.statement(44)
@pytest.mark.parametrize("state", [SUBMITTED, WORKING])
async def test_a_task_that_nobody_was_heard_to_run_is_stuck(store, save, age, state):
    version = await save(a_task(state))
    await age("updated_at")
    await age("heartbeat_at")
    (stuck,) = await store.stuck(50)
    assert (stuck.task, stuck.version, stuck.owner, stuck.replica) == (
        a_task(state),
        version,
        "client-1",
        "replica-a",
    )
    assert await store.stuck(200) == []


@pytest.mark.statement(44)
@pytest.mark.parametrize("fresh", ["updated_at", "heartbeat_at"])
async def test_a_task_saved_or_heard_of_is_not_stuck(store, save, age, fresh):
    await save(a_task(WORKING))
    await age({"updated_at": "heartbeat_at", "heartbeat_at": "updated_at"}[fresh])
    assert await store.stuck(50) == []


@pytest.mark.statement(44)
@pytest.mark.parametrize("state", [INPUT_REQUIRED, COMPLETED, FAILED, REJECTED])
async def test_a_parked_or_ended_task_is_never_stuck(store, save, age, state):
    await save(a_task(state))
    await age("updated_at")
    await age("heartbeat_at")
    assert await store.stuck(50) == []


async def test_the_oldest_stuck_tasks_come_first(store, save, age):
    for seconds, task_id in [(100, "t1"), (300, "t2"), (200, "t3")]:
        await save(a_task(task_id=task_id))
        await age("updated_at", task_id, seconds)
        await age("heartbeat_at", task_id, seconds)
    assert [stuck.task.id for stuck in await store.stuck(50, limit=2)] == ["t2", "t3"]


async def test_a_heartbeat_says_which_replica_runs_the_task(pool, save, age, query):
    await save(a_task())
    await age("heartbeat_at")
    other = TaskStore(pool, "replica-b")
    await other.heartbeat(name for name in ["t1", "t9"])
    await other.heartbeat([])
    where = "SELECT replica, heartbeat_at > now() - interval '50 s' FROM"
    assert await query(f"{where} billing_agent_a2atask") == [("replica-b", True)]


@pytest.fixture
async def stuck(store, save, age):
    await save(a_task(WORKING))
    await age("updated_at")
    await age("heartbeat_at")
    (found,) = await store.stuck(50)
    return found


@pytest.mark.statement(44)
async def test_of_many_sweepers_one_fails_the_stuck_task(store, stuck, query):
    event = status_event(FAILED)
    event.status.message.CopyFrom(Message(message_id="m2", parts=[Part(text="no")]))
    outcomes = await asyncio.gather(*(store.fail(stuck, event) for _ in range(10)))
    assert sorted(outcomes) == [False] * 9 + [True]
    stored = await store.get("t1", MINE)
    assert stored.task.status == event.status
    ((body,),) = await query("SELECT body FROM billing_agent_a2ataskevent")
    assert StreamResponse.FromString(body).status_update == event


@pytest.mark.statement(44)
async def test_a_task_heard_of_since_it_was_found_is_not_failed(store, stuck):
    await store.heartbeat(["t1"])
    assert not await store.fail(stuck, status_event(FAILED))
    assert await stored_state(store) == "WORKING"


@pytest.mark.statement(44)
@pytest.mark.parametrize("state", [WORKING, INPUT_REQUIRED, COMPLETED])
async def test_a_task_saved_since_it_was_found_is_not_failed(store, stuck, save, state):
    await save(a_task(state), stuck.version)
    before = await store.get("t1", MINE)
    assert not await store.fail(stuck, status_event(FAILED))
    assert await store.get("t1", MINE) == before
