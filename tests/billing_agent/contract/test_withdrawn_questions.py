"""A question is cancelled while the run that asked it is still leaving."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from a2a.types import TaskState

from tests.billing_agent.contract.in_process import asks
from tests.billing_agent.executor.conftest import LocalTurns
from tests.billing_agent.executor.shapes import shapes

pytestmark = pytest.mark.django_db(transaction=True)


class Lingers(LocalTurns):
    """Turns that nobody gives back, as when their connection answers no more."""

    @asynccontextmanager
    async def turn(self, subject: str, context_id: str, wait: float):
        async with super().turn(subject, context_id, wait):
            yield
            await asyncio.Event().wait()


@pytest.mark.statement(34, 44)
@pytest.mark.parametrize("channel", [True, False])
@pytest.mark.parametrize("through", ["owner", "other"])
async def test_a_subscriber_sees_a_question_withdrawn_while_its_run_leaves(
    make_replica,
    through,
    channel,
):
    here = make_replica("replica-a", asks(), cancel_channel=channel)
    there = make_replica("replica-b", asks())
    here.handler.agent_executor._turns = Lingers()
    task = await here.send("hello")
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert task.id in here.registry

    async with asyncio.timeout(20), here.subscribe(task.id) as events:
        assert shapes([await anext(events)]) == ["Task"]
        await (here if through == "owner" else there).cancel(task.id)
        rest = [event async for event in events]

    assert [event.status.state for event in rest] == [TaskState.TASK_STATE_CANCELED]
    assert task.id not in here.registry
    stored = await here.stored(task.id)
    assert stored.status.state == TaskState.TASK_STATE_CANCELED
