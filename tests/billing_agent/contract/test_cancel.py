"""Cancel on the owning replica and on the other one, over real processes."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.billing_agent.contract.watch import model_calls, steady, until
from tests.peer import Refused, state

pytestmark = pytest.mark.processes

AUDIT = "audit the last 15 invoices"
# A model call takes 0.15 s: long enough to see whether another one begins.
QUIET = 0.6


@pytest.fixture
async def replicas(make_slow_peer):
    subject = f"cancel-{secrets.token_hex(4)}"
    return (
        await make_slow_peer("replica-a", subject),
        await make_slow_peer("replica-b", subject),
    )


@pytest.fixture
def running_audit(slow_demo, replicas):
    """Return a function: start an audit on B and wait until it works."""

    async def start(**switches):
        task = await replicas[1].send(AUDIT, context_id="ctx-41", now=True, **switches)
        await until(lambda: model_calls(slow_demo, task["id"]))
        return task["id"]

    return start


@pytest.mark.statement(31)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
async def test_cancel_on_the_owner_stops_the_run_for_good(
    slow_demo, replicas, running_audit, output
):
    _, b = replicas
    task_id = await running_audit(output=output)

    canceled = await b.cancel(task_id)

    assert state(canceled) == "CANCELED"
    await steady(lambda: model_calls(slow_demo, task_id), QUIET)
    assert state(await b.get(task_id)) == "CANCELED"


@pytest.mark.statement(34)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
async def test_cancel_through_the_other_replica_stops_the_owners_run(
    slow_demo, replicas, running_audit, output
):
    a, _ = replicas
    task_id = await running_audit(output=output)

    canceled = await a.cancel(task_id)

    assert state(canceled) == "CANCELED"
    calls = await steady(lambda: model_calls(slow_demo, task_id), QUIET)
    assert calls < 15
    for peer in replicas:
        assert state(await peer.get(task_id)) == "CANCELED"


@pytest.mark.statement(34)
async def test_without_the_channel_a_quiet_run_goes_on_to_its_end(
    slow_demo, replicas, running_audit
):
    a, b = replicas
    task_id = await running_audit(output="per-run", cancel="none")

    await a.cancel(task_id)

    await until(lambda: _all_audited(slow_demo, task_id))
    await steady(lambda: b.get(task_id), QUIET)
    assert state(await b.get(task_id)) == "CANCELED"


@pytest.mark.statement(34)
async def test_without_the_channel_a_writing_run_stops_at_its_next_write(
    slow_demo, replicas, running_audit
):
    a, b = replicas
    task_id = await running_audit(output="per-event", cancel="none")

    await a.cancel(task_id)

    calls = await model_calls(slow_demo, task_id)
    await asyncio.sleep(0)
    stopped = await _settled(lambda: model_calls(slow_demo, task_id))
    assert calls <= stopped < 15
    assert state(await b.get(task_id)) == "CANCELED"


@pytest.mark.statement(34)
async def test_a_subscriber_of_the_owner_sees_the_foreign_cancel(
    replicas, running_audit
):
    a, b = replicas
    task_id = await running_audit()
    async with b.subscribe(task_id) as events:
        first = await anext(events)
        assert state(first["task"]) == "WORKING"

        await a.cancel(task_id)

        rest = [event async for event in events]
    assert "TASK_STATE_CANCELED" in str(rest[-1])


@pytest.mark.statement(31)
async def test_the_conversation_is_usable_after_a_cancel(replicas, running_audit):
    a, b = replicas
    await a.cancel(await running_audit())

    task = await b.send("list my invoices", context_id="ctx-41")
    assert state(await b.until(task["id"])) == "COMPLETED"


@pytest.mark.statement(35)
async def test_cancel_of_ended_unknown_and_canceled_tasks(replicas, running_audit):
    a, b = replicas
    done = await b.until((await b.send("list my invoices"))["id"])
    canceled = await running_audit()
    await b.cancel(canceled)

    for peer in (a, b):
        for task_id, code in [
            (done["id"], -32002),
            (canceled, -32002),
            ("no-such-task", -32001),
        ]:
            with pytest.raises(Refused) as refused:
                await peer.cancel(task_id)
            assert refused.value.code == code


@pytest.mark.statement(35)
async def test_a_parked_question_can_be_canceled_from_either_replica(replicas):
    a, b = replicas
    for peer in (a, b):
        asked = await b.send("Why was invoice 8812 higher than last month?")
        asked = await b.until(asked["id"], "INPUT_REQUIRED")

        assert state(await peer.cancel(asked["id"])) == "CANCELED"
        with pytest.raises(Refused) as refused:
            await b.send("The compute line.", task_id=asked["id"])
        assert refused.value.code == -32004


async def _all_audited(demo, task_id):
    return await model_calls(demo, task_id) == 15


async def _settled(read):
    """Wait until a count has stayed the same for a while; return it."""
    while True:
        before = await read()
        await asyncio.sleep(QUIET)
        if await read() == before:
            return before
