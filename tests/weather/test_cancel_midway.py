"""Cancel in the middle of a model call, and in the middle of a tool."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.billing_agent.contract.watch import steady, until
from tests.peer import state
from tests.weather.locks import INVOICES, locked, turns_are_free, waiting
from tests.weather.stored import dangling, interleaved, session_events, states

AUDIT = "audit the last 5 invoices"
KEEP = "remember that I like short answers"
OUTPUTS = ["per-run", "per-event"]
# How long nothing may happen after a cancel.
QUIET = 1.0


@pytest.fixture
def subject():
    return f"midway-{secrets.token_hex(4)}"


async def _canceled(demo, peers, task_id, events):
    """Check a stream, the tables and both replicas after a cancel."""
    rest = [event async for event in events]
    assert "TASK_STATE_CANCELED" in str(rest[-1])
    assert sum("TASK_STATE_CANCELED" in str(event) for event in rest) == 1
    seen = await steady(lambda: states(demo, task_id), QUIET)
    assert seen.count("CANCELED") == 1
    assert seen[-1] == "CANCELED"
    for peer in peers:
        assert state(await peer.get(task_id)) == "CANCELED"


async def _seen(demo, subject, context_id):
    return len(await session_events(demo, subject, context_id))


@pytest.mark.weather
@pytest.mark.statement(31)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("through", ["owner", "other"])
async def test_cancel_in_a_model_call_stops_the_call(
    sleepy_demo, make_sleepy_peer, subject, through, output
):
    peers = [
        await make_sleepy_peer(name, subject) for name in ("replica-b", "replica-a")
    ]
    owner = peers[0]
    canceler = owner if through == "owner" else peers[1]
    async with owner.stream(AUDIT, context_id="ctx-41", output=output) as events:
        task_id = (await anext(events))["task"]["id"]
        await until(lambda: _seen(sleepy_demo, subject, "ctx-41"))

        canceled = await canceler.cancel(task_id)

        assert state(canceled) == "CANCELED"
        await _canceled(sleepy_demo, peers, task_id, events)
    # Only what the user said: the call never came to an end.
    assert await _seen(sleepy_demo, subject, "ctx-41") == 1
    assert await _turn_is_free(sleepy_demo)


@pytest.mark.processes
@pytest.mark.statement(31, 32)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("through", ["owner", "other"])
async def test_cancel_in_a_tool_is_silent_and_the_conversation_goes_on(
    demo, make_peer, subject, through, output
):
    peers = [await make_peer(name, subject) for name in ("replica-b", "replica-a")]
    owner = peers[0]
    canceler = owner if through == "owner" else peers[1]
    async with locked(demo, INVOICES):
        async with owner.stream(AUDIT, context_id="ctx-41", output=output) as events:
            task_id = (await anext(events))["task"]["id"]
            await waiting(demo, INVOICES)

            canceled = await canceler.cancel(task_id)

            assert state(canceled) == "CANCELED"
            await _canceled(demo, peers, task_id, events)
        # The turn is free at once, although the query goes on.
        kept = await canceler.send(KEEP, context_id="ctx-41")
        assert state(kept) == "COMPLETED"

    await steady(lambda: states(demo, task_id), QUIET)
    again = await owner.send(AUDIT, context_id="ctx-41")
    assert state(again) == "COMPLETED"
    events = await session_events(demo, subject, "ctx-41")
    assert dangling(events) == set()
    assert not interleaved(events)


@pytest.mark.processes
@pytest.mark.statement(31)
async def test_many_canceled_tools_leave_room_for_the_next(demo, make_peer, subject):
    b = await make_peer("replica-b", subject)
    async with locked(demo, INVOICES):
        tasks = [await b.send(AUDIT, now=True) for _ in range(8)]
        await waiting(demo, INVOICES)
        await asyncio.gather(*(b.cancel(task["id"]) for task in tasks))
    assert state(await b.send(AUDIT)) == "COMPLETED"


async def _turn_is_free(demo):
    return await until(lambda: turns_are_free(demo))
