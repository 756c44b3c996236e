"""A replica is killed in the middle of its work; nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal

import httpx
import pytest

from tests.billing_agent.contract.watch import model_calls, rows, until
from tests.conftest import peers_of, running_demo
from tests.peer import Refused, state, texts
from tests.weather.locks import INVOICES, SESSIONS, locked, waiting
from tests.weather.stored import (
    ENDS,
    dangling,
    interleaved,
    said,
    session_events,
    states,
)

pytestmark = [pytest.mark.weather, pytest.mark.statement(44)]

AUDIT = "audit the last 15 invoices"
QUESTION = "Why was invoice 8812 higher than last month?"
FAILED = r"^Agent execution failed\. \(error_id: [0-9a-f]{12}\)$"


@pytest.fixture(scope="module")
def mortal_demo():
    """A demo that notices within seconds that nobody runs a task."""
    settings = {
        "SCRIPTED_MODEL_LATENCY": "0.1",
        "RUN_TIMEOUT": "3",
        "SWEEP_INTERVAL": "0.3",
    }
    with running_demo(**settings) as running:
        yield running


@pytest.fixture
def subject():
    return f"killed-{secrets.token_hex(4)}"


@pytest.fixture
async def replicas(mortal_demo, subject):
    """Both replicas; B is there again after the test."""
    async with peers_of(mortal_demo) as make:
        yield await make("replica-a", subject), await make("replica-b", subject)
        await _back(mortal_demo)


async def _kill(demo):
    os.kill(demo.pid_of("replica-b"), signal.SIGKILL)


async def _back(demo):
    async def ready():
        try:
            async with httpx.AsyncClient() as client:
                url = demo.replicas["replica-b"] + "/readyz"
                return (await client.get(url)).status_code == 200
        except httpx.TransportError:
            return False

    await until(ready, deadline=30)


async def _swept(demo, peer, task_id):
    """Wait until a task is failed, and check that it is in a proper way."""
    failed = await peer.until(task_id)
    assert state(failed) == "FAILED"
    assert re.match(FAILED, failed["status"]["message"]["parts"][0]["text"])
    seen = await states(demo, task_id)
    assert [entry for entry in seen if entry in ENDS] == ["FAILED"]
    assert seen[-1] == "FAILED"
    return failed


@pytest.mark.statement(37)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
@pytest.mark.parametrize("moment", ["model", "tool"])
async def test_killed_in_a_run_the_conversation_goes_on_elsewhere(
    mortal_demo, replicas, subject, moment, output
):
    a, b = replicas
    before = await b.send("list my invoices", context_id="ctx-41")
    options = {"context_id": "ctx-41", "now": True, "output": output}
    if moment == "model":
        task = await b.send(AUDIT, **options)
        await until(lambda: model_calls(mortal_demo, task["id"]))
        await _kill(mortal_demo)
    else:
        async with locked(mortal_demo, INVOICES):
            task = await b.send(AUDIT, **options)
            await waiting(mortal_demo, INVOICES)
            await _kill(mortal_demo)
    was = await session_events(mortal_demo, subject, "ctx-41")

    # At once: the turn of a process that dies is free.
    after = await a.send("list my invoices", context_id="ctx-41")

    assert state(after) == "COMPLETED"
    failed = await _swept(mortal_demo, a, task["id"])
    assert failed["history"][0]["parts"] == [{"text": AUDIT}]
    assert await a.get(before["id"]) == before
    events = await session_events(mortal_demo, subject, "ctx-41")
    assert events[: len(was)] == was
    assert said(events).count(AUDIT) == 1
    assert said(events).count("list my invoices") == 2
    assert not interleaved(events)
    assert dangling(events) == set()


@pytest.mark.statement(40)
async def test_an_answer_its_replica_took_to_the_grave_is_taken_when_sent_again(
    mortal_demo, replicas
):
    a, b = replicas
    asked = await b.send(QUESTION, context_id="ctx-41")
    same = {"task_id": asked["id"], "message_id": "m-2"}
    async with locked(mortal_demo, SESSIONS):
        sending = asyncio.ensure_future(b.send("The compute line.", **same))
        await waiting(mortal_demo, SESSIONS)
        await _kill(mortal_demo)
        await asyncio.wait({sending})
    assert isinstance(sending.exception(), httpx.TransportError)
    await until(lambda: _silent(mortal_demo, asked["id"]))

    done = await a.send("The compute line.", **same)

    assert state(done) == "COMPLETED"
    assert str(done["history"]).count("The compute line.") == 1


async def _silent(demo, task_id):
    """Whether three sweeps have passed without a word of a task."""
    query = (
        "SELECT 1 FROM billing_agent_a2atask task JOIN billing_agent_a2asend send"
        " ON task_id = task.id WHERE task.id = %s GROUP BY task.id"
        " HAVING now() - interval '0.9 s'"
        " > greatest(heartbeat_at, updated_at, max(claimed_at))"
    )
    return await rows(demo, query, task_id)


async def test_killed_while_it_waits_for_an_answer_the_other_one_takes_it(
    mortal_demo, replicas
):
    a, b = replicas
    asked = await b.send(QUESTION, context_id="ctx-41")
    await _kill(mortal_demo)

    done = await a.send("The compute line.", context_id="ctx-41", task_id=asked["id"])

    assert state(done) == "COMPLETED"
    assert "1,055.00" in texts(done)[0]


async def test_killed_before_a_turn_that_waits_elsewhere_the_turn_comes(
    mortal_demo, replicas
):
    a, b = replicas
    task = await b.send(AUDIT, context_id="ctx-41", now=True)
    await until(lambda: model_calls(mortal_demo, task["id"]))
    next_one = asyncio.ensure_future(a.send("list my invoices", context_id="ctx-41"))
    behind = await b.send("list my invoices", context_id="ctx-41", now=True)

    await _kill(mortal_demo)

    assert state(await next_one) == "COMPLETED"
    for gone in (task, behind):
        await _swept(mortal_demo, a, gone["id"])


@pytest.mark.statement(40)
async def test_every_send_cut_off_by_the_kill_may_be_sent_again(
    mortal_demo, replicas, subject
):
    """Sends at the very moment of the kill: some are stored, some are not."""
    a, b = replicas
    sends = [
        {"context_id": f"cut-{number}", "message_id": f"m-{number}"}
        for number in range(20)
    ]
    calls = [
        asyncio.ensure_future(_tried(b, f"list my invoices, {n}", send))
        for n, send in enumerate(sends)
    ]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    await _kill(mortal_demo)
    first = await asyncio.gather(*calls)

    again = await asyncio.gather(
        *(a.send(f"list my invoices, {n}", **send) for n, send in enumerate(sends))
    )

    for number, (known, repeated) in enumerate(zip(first, again, strict=True)):
        ended = await a.until(repeated["id"])
        assert state(ended) in {"COMPLETED", "FAILED"}
        assert known is None or known["id"] == repeated["id"]
        listed = await a.rpc("ListTasks", {"contextId": f"cut-{number}"})
        assert [task["id"] for task in listed["tasks"]] == [repeated["id"]]
        if state(ended) == "COMPLETED":
            events = await session_events(mortal_demo, subject, f"cut-{number}")
            assert said(events).count(f"list my invoices, {number}") == 1


async def _tried(peer, text, options):
    """Send; return the acknowledged task, None when the connection broke."""
    try:
        return await peer.send(text, **options)
    except (httpx.TransportError, Refused):
        return None
