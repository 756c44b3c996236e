"""A second answer comes while the first one's events are still being stored."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import TaskState
from a2a.utils.errors import UnsupportedOperationError

from tests.billing_agent.contract.in_process import asks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.statement(39)
async def test_an_answer_runs_nothing_when_another_was_taken_but_not_stored(
    make_replica, monkeypatch
):
    here = make_replica("replica-a", asks())
    there = make_replica("replica-b", asks())
    one_turn = here.handler.agent_executor._turns
    monkeypatch.setattr(there.handler.agent_executor, "_turns", one_turn)
    task = await here.send("hello")
    saving, go_on = asyncio.Event(), asyncio.Event()
    save = here.store.save

    async def slowly(*args, **kwargs):
        saving.set()
        await go_on.wait()
        return await save(*args, **kwargs)

    monkeypatch.setattr(here.store, "save", slowly)
    first = asyncio.ensure_future(here.send("one", task_id=task.id))
    await saving.wait()
    second = asyncio.ensure_future(there.send("two", task_id=task.id))
    # As long as it may take to run what must not.
    await asyncio.wait({second}, timeout=0.5)
    go_on.set()

    done = await first
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    with pytest.raises(UnsupportedOperationError):
        await second
    heard = [message.parts[0].text for message in done.history]
    assert heard == ["hello", "Which one?", "one"]
