"""PostgreSQL goes away for seconds while runs are in the middle of their work."""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.billing_agent.contract.watch import model_calls, until
from tests.conftest import peers_of, running_demo
from tests.peer import ENDED, Refused, state, texts
from tests.weather.locks import turns_are_free
from tests.weather.server import running_server
from tests.weather.stored import ENDS, interleaved, said, session_events, states

pytestmark = [pytest.mark.weather, pytest.mark.case(19)]

AUDIT = "audit the last 15 invoices"  # a model call each, 0.15 s
QUESTION = "Why was invoice 8812 higher than last month?"
INTERNAL = r"^-32603: Internal error\. \(error_id: [0-9a-f]{12}\)$"
FAILED = r"^Agent execution failed\. \(error_id: [0-9a-f]{12}\)$"
ANSWER_ID = "the-answer"
STATES = {"SUBMITTED", *(name.removeprefix("TASK_STATE_") for name in ENDED)}
# Seconds in which a caller gets its answer, whatever the database does.
BOUND = 10


@dataclass
class Outage:
    """One outage: what callers had before it and what they got in it."""

    demo: Any
    subject: str
    pids: dict[str, int]
    parked: dict[str, Any] = field(default_factory=dict)
    acknowledged: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)

    @asynccontextmanager
    async def peers(self):
        async with peers_of(self.demo) as make:
            names = ("replica-a", "replica-b", "router")
            yield [await make(name, self.subject) for name in names]


@pytest.fixture(
    scope="module",
    params=[(signal.SIGINT, 5), (signal.SIGQUIT, 5), (signal.SIGINT, 12)],
    ids=["stopped", "crashed", "away-for-long"],
)
def outage(request):
    how, seconds = request.param
    settings = {
        "SCRIPTED_MODEL_LATENCY": "0.15",
        "RUN_TIMEOUT": "20",
        "SWEEP_INTERVAL": "1",
    }
    with (
        running_server() as server,
        running_demo(DATABASE_URL=server.url, **settings) as demo,
    ):
        yield asyncio.run(_go_through(demo, server, how, seconds))


async def _go_through(demo, server, how, seconds):
    seen = Outage(demo, f"outage-{secrets.token_hex(4)}", dict(demo.parts))
    async with seen.peers() as (a, b, router):
        asked = await b.send(QUESTION, context_id="parked")
        done = await a.send("list my invoices", context_id="done")
        runs = [
            await b.send(AUDIT, context_id=f"run-{mode}", now=True, output=mode)
            for mode in ("per-run", "per-event")
        ]
        seen.parked, seen.acknowledged = asked, [asked, done, *runs]
        calls = _in_mid_run(a, b, router)
        waiting = {name: asyncio.ensure_future(call) for name, call in calls.items()}
        for run in runs:
            await until(lambda run=run: model_calls(demo, run["id"]))

        server.stop(how)
        calls = _while_away(a, b, router, asked, runs[0])
        waiting |= {name: asyncio.ensure_future(call) for name, call in calls.items()}
        back = asyncio.get_running_loop().time() + seconds
        bounded = {name: _bounded(answer) for name, answer in waiting.items()}
        collecting = asyncio.gather(*bounded.values())
        seen.ready = [await _status(url) for url in demo.replicas.values()]
        await asyncio.sleep(back - asyncio.get_running_loop().time())
        server.start()
        seen.answers = dict(zip(bounded, await collecting, strict=True))
    return seen


def _in_mid_run(a, b, router):
    per_event = {"context_id": "mid-3", "output": "per-event"}
    return {
        "blocking": _task(b.send(AUDIT, context_id="mid-1")),
        "stream": _end(b.stream(AUDIT, context_id="mid-2")),
        "stream of events": _end(b.stream(AUDIT, **per_event)),
        "stream through the router": _end(router.stream(AUDIT, context_id="mid-4")),
    }


def _while_away(a, b, router, asked, run):
    text = "list my invoices"
    sends = [{"context_id": f"away-{n}", "message_id": "m-1"} for n in range(1, 5)]
    answer = {"task_id": asked["id"], "message_id": ANSWER_ID}
    return {
        "send to a": _task(a.send(text, **sends[0])),
        "send to b": _task(b.send(text, **sends[1], now=True)),
        "send to the router": _task(router.send(text, **sends[2])),
        "stream": _end(a.stream(text, **sends[3])),
        "answer": _task(a.send("The compute line.", **answer)),
        "get": _task(a.get(run["id"])),
        "cancel": _task(b.cancel(run["id"])),
    }


async def _task(call):
    return state(await call)


async def _end(stream):
    """Return the state a stream ends with."""
    last = {}
    async with stream as events:
        async for event in events:
            last = event
    return last["statusUpdate"]["status"]["state"].removeprefix("TASK_STATE_")


async def _bounded(call):
    """Return a call's answer or its error as text; fail when it takes too long."""
    try:
        async with asyncio.timeout(BOUND):
            return await call
    except TimeoutError:
        return "no answer"
    except Refused as refused:
        return str(refused)


async def _status(url):
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/readyz")).status_code


async def test_every_caller_has_a_safe_answer_within_ten_seconds(outage):
    for name, answer in outage.answers.items():
        safe = answer in STATES or re.match(INTERNAL, answer)
        assert safe, f"{name}: {answer}"


async def test_a_replica_says_that_it_is_not_ready_until_it_is(outage):
    assert set(outage.ready) == {503}
    for url in outage.demo.replicas.values():
        await until(lambda url=url: _is_ready(url))


async def _is_ready(url):
    return await _status(url) == 200


async def test_no_process_ends(outage):
    assert {name: outage.demo.pid_of(name) for name in outage.pids} == outage.pids


async def test_what_was_acknowledged_is_stored(outage):
    async with outage.peers() as (a, _, _):
        for task in outage.acknowledged:
            stored = await a.get(task["id"])
            assert stored["history"][0] == task["history"][0]
        for context_id, text in [("parked", QUESTION), ("done", "list my invoices")]:
            events = await session_events(outage.demo, outage.subject, context_id)
            assert text in said(events)


async def test_every_task_ends_once_and_says_no_more_than_it_should(outage):
    async with outage.peers() as (a, b, _):
        tasks = (await a.rpc("ListTasks", {"pageSize": 100}))["tasks"]
        assert len(tasks) >= len(outage.acknowledged)
        for task in tasks:
            ended = await a.until(task["id"], deadline=60)
            assert state(await b.get(task["id"])) == state(ended)
            seen = await states(outage.demo, task["id"])
            assert [s for s in seen if s in ENDS] == seen[-1:] or not ENDS & {*seen}
            if state(ended) == "FAILED":
                (part,) = ended["status"]["message"]["parts"]
                assert re.match(FAILED, part["text"])


async def test_interrupted_conversations_go_on(outage):
    contexts = [f"mid-{number}" for number in range(1, 5)]
    contexts += [task["contextId"] for task in outage.acknowledged[1:]]
    async with outage.peers() as (a, b, _):
        for context_id in contexts:
            for peer in (a, b):
                task = await peer.send("list my invoices", context_id=context_id)
                assert state(task) == "COMPLETED"
            events = await session_events(outage.demo, outage.subject, context_id)
            assert not interleaved(events)


async def test_the_parked_question_can_be_answered(outage):
    asked = outage.parked
    async with outage.peers() as (a, _, _):
        if state(await a.get(asked["id"])) == "INPUT_REQUIRED":
            # The very same send that got an error while the database was away.
            await a.send("The compute line.", task_id=asked["id"], message_id=ANSWER_ID)
        done = await a.get(asked["id"])
    assert state(done) == "COMPLETED"
    assert "1,055.00" in texts(done)[0]


async def test_a_send_that_got_an_error_may_be_sent_again(outage):
    async with outage.peers() as (a, _, _):
        for context_id in ("away-1", "away-2", "away-3", "away-4"):
            same = {"context_id": context_id, "message_id": "m-1"}
            again = await a.send("list my invoices", **same)
            ended = await a.until(again["id"])
            assert state(ended) in {"COMPLETED", "FAILED"}
            assert _ids(ended["history"]).count("m-1") == 1
            (only,) = (await a.rpc("ListTasks", {"contextId": context_id}))["tasks"]
            assert only["id"] == ended["id"]


def _ids(history):
    return [message["messageId"] for message in history]


async def test_cancels_and_subscriptions_cross_replicas_again(outage):
    async with outage.peers() as (a, b, _):
        run = await b.send(AUDIT, now=True)
        async with a.subscribe(run["id"]) as events:
            await until(lambda: model_calls(outage.demo, run["id"]))
            await anext(events)
            await a.cancel(run["id"])
            rest = [event async for event in events]
        assert "TASK_STATE_CANCELED" in str(rest[-1])
        calls = await model_calls(outage.demo, run["id"])
        assert calls < 15


async def test_no_turn_stays_taken(outage):
    await until(lambda: turns_are_free(outage.demo))
