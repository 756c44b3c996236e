"""The same send again while the first one's run is held, and after one that failed."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import TaskState
from a2a.utils.errors import ContentTypeNotSupportedError

from tests.billing_agent.contract.in_process import asks, plays, working
from tests.billing_agent.contract.watch import until
from tests.billing_agent.executor.conftest import says
from tests.billing_agent.stores.test_tasks import query  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.statement(40)]


@pytest.fixture
async def replicas(make_replica):
    """Return A, B, and what lets their runs go on."""
    go = asyncio.Event()

    async def answer(ctx):
        await go.wait()
        return says("hi")

    names = ("replica-a", "replica-b")
    return *(make_replica(name, plays(answer)) for name in names), go


@pytest.mark.parametrize("second_on", ["owner", "other"])
async def test_a_repeated_send_gets_the_running_task_now_or_at_its_end(
    replicas, second_on
):
    a, b, go = replicas
    again = b if second_on == "owner" else a
    async with asyncio.timeout(20):
        first = asyncio.create_task(b.send("hello", context_id="ctx-41"))
        task_id = await until(lambda: working(b))

        now = await again.send("hello", context_id="ctx-41", now=True)
        blocking = asyncio.create_task(again.send("hello", context_id="ctx-41"))

        assert (now.id, now.status.state) == (task_id, TaskState.TASK_STATE_WORKING)
        assert not first.done()
        go.set()
        tasks = [await first, await blocking]
    assert [task.id for task in tasks] == [task_id] * 2
    completed = TaskState.TASK_STATE_COMPLETED
    assert [task.status.state for task in tasks] == [completed] * 2
    assert len(a.registry.ended(0) | b.registry.ended(0)) == 1


async def test_a_send_that_was_refused_leaves_no_claim(replicas, query):  # noqa: F811
    a, _, _ = replicas

    with pytest.raises(ContentTypeNotSupportedError):
        await a.send("hello", context_id="ctx-41", media_type="image/png")

    assert await query("SELECT count(*) FROM billing_agent_a2asend") == [(0,)]


async def test_the_same_words_in_another_conversation_are_a_new_message(make_replica):
    a = make_replica("replica-a", plays(says("hi")))

    one = await a.send("hello", context_id="ctx-41")
    two = await a.send("hello", context_id="ctx-42")

    assert (one.context_id, two.context_id) == ("ctx-41", "ctx-42")


async def test_the_same_answer_to_another_question_is_a_new_message(make_replica):
    a = make_replica("replica-a", asks())
    asked = [await a.send(f"hello {n}") for n in range(2)]

    answered = [await a.send("this", task_id=task.id) for task in asked]

    assert [task.id for task in answered] == [task.id for task in asked]
    completed = TaskState.TASK_STATE_COMPLETED
    assert [task.status.state for task in answered] == [completed] * 2
