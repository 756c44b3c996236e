"""Sends that wait, leave, come again; subscriptions on either replica."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.billing_agent.contract.watch import model_calls, until
from tests.peer import Refused, message_params, state, texts

pytestmark = pytest.mark.processes

AUDIT = "audit the last 10 invoices"  # takes about 1.7 s, longer than the wait


@pytest.fixture
async def replicas(make_slow_peer):
    subject = f"wait-{secrets.token_hex(4)}"
    return (
        await make_slow_peer("replica-a", subject),
        await make_slow_peer("replica-b", subject),
    )


@pytest.mark.statement(45)
async def test_a_blocking_send_returns_the_task_as_it_stands(replicas):
    _, b = replicas

    task = await b.send(AUDIT)

    assert state(task) == "WORKING"
    assert state(await b.until(task["id"])) == "COMPLETED"


@pytest.mark.statement(45)
@pytest.mark.parametrize("leaves", [False, True])
async def test_return_immediately_gives_the_first_task_and_the_run_goes_on(
    replicas, make_slow_peer, leaves
):
    a, b = replicas

    task = await b.send(AUDIT, now=True)
    if leaves:
        await b.http.aclose()

    assert state(task) in {"SUBMITTED", "WORKING"}
    done = await a.until(task["id"])
    assert state(done) == "COMPLETED"
    assert len(texts(done)) == 1


@pytest.mark.statement(41)
@pytest.mark.parametrize("kind", ["stream", "blocking"])
async def test_a_client_that_leaves_does_not_stop_the_run(slow_demo, replicas, kind):
    a, b = replicas
    if kind == "stream":
        async with b.stream(AUDIT) as events:
            task_id = (await anext(events))["task"]["id"]
    else:
        sending = asyncio.ensure_future(b.send(AUDIT, context_id="ctx-left"))
        task_id = await until(lambda: _newest(a))
        sending.cancel()
        await asyncio.wait({sending})

    assert state(await a.until(task_id)) == "COMPLETED"
    assert await model_calls(slow_demo, task_id) == 10


@pytest.mark.statement(41)
@pytest.mark.parametrize("where", ["owner", "other"])
async def test_subscribe_follows_a_run_on_either_replica(replicas, where):
    a, b = replicas
    task = await b.send(AUDIT, now=True, output="per-event")
    peer = b if where == "owner" else a

    async with peer.subscribe(task["id"]) as events:
        received = [event async for event in events]

    assert "task" in received[0]
    assert "TASK_STATE_COMPLETED" in str(received[-1])
    artifacts = [e for e in received if "artifactUpdate" in e]
    known = received[0]["task"].get("artifacts", [])
    done = await a.get(task["id"])
    assert len(known) + len(artifacts) == len(done["artifacts"])


@pytest.mark.statement(40)
@pytest.mark.parametrize("second_on", ["owner", "other"])
@pytest.mark.parametrize("mode", ["blocking", "stream", "now"])
async def test_the_same_send_again_is_one_run(slow_demo, replicas, second_on, mode):
    a, b = replicas
    again = b if second_on == "owner" else a
    same = {"context_id": f"ctx-{secrets.token_hex(4)}", "message_id": "m-1"}
    text = "audit the last 5 invoices"

    async def repeat():
        if mode == "stream":
            async with again.stream(text, **same) as events:
                return [event async for event in events]
        return await again.send(text, now=mode == "now", **same)

    first, second = await asyncio.gather(b.send(text, **same), repeat())

    (task,) = (await a.rpc("ListTasks", {"contextId": same["context_id"]}))["tasks"]
    done = await a.until(task["id"])
    assert first["id"] == task["id"]
    if mode == "stream":
        assert task["id"] in str(second[0])
        assert "TASK_STATE_COMPLETED" in str(second[-1])
    else:
        assert second["id"] == task["id"]
    assert state(done) == "COMPLETED"
    assert await model_calls(slow_demo, task["id"]) == 5


@pytest.mark.statement(40)
async def test_the_same_answer_again_is_one_run(slow_demo, replicas):
    a, b = replicas
    context_id = f"ctx-{secrets.token_hex(4)}"
    asked = await b.send(
        "Why was invoice 8812 higher than last month?", context_id=context_id
    )
    asked = await b.until(asked["id"], "INPUT_REQUIRED")
    same = {"context_id": context_id, "task_id": asked["id"], "message_id": "m-2"}

    tasks = await asyncio.gather(
        *(peer.send("The compute line.", **same) for peer in (a, b, b, a))
    )

    assert {state(task) for task in tasks} == {"COMPLETED"}
    assert {str(texts(task)) for task in tasks} == {str(texts(tasks[0]))}
    compared = await model_calls(slow_demo, asked["id"])
    assert compared == 3  # get_invoice, ask_user, compare_line_item


@pytest.mark.statement(40)
async def test_the_same_message_id_with_other_parts_is_a_new_message(replicas):
    _, b = replicas
    same = {"context_id": f"ctx-{secrets.token_hex(4)}", "message_id": "m-1"}

    first = await b.send("list my invoices", **same)
    second = await b.send("list my last 2 invoices", **same)

    assert first["id"] != second["id"]


@pytest.mark.statement(40)
async def test_a_send_that_names_nothing_is_never_matched(replicas):
    _, b = replicas

    first = await b.send("list my invoices", message_id="m-1")
    second = await b.send("list my invoices", message_id="m-1")

    assert first["id"] != second["id"]


@pytest.mark.statement(40)
async def test_a_refused_send_may_be_tried_again(replicas):
    _, b = replicas
    params, headers = message_params(
        "list my invoices", context_id="ctx-again", message_id="m-1", output="nope"
    )
    with pytest.raises(Refused):
        await b.rpc("SendMessage", params, **headers)
    params["metadata"] = {}

    task = (await b.rpc("SendMessage", params))["task"]

    assert state(await b.until(task["id"])) == "COMPLETED"


@pytest.mark.statement(40)
async def test_another_subject_is_never_matched(make_slow_peer):
    one, two = await make_slow_peer("replica-a"), await make_slow_peer("replica-a")
    same = {"context_id": "ctx-41", "message_id": "m-1"}

    first = await one.send("list my invoices", **same)
    second = await two.send("list my invoices", **same)

    assert first["id"] != second["id"]


async def _newest(peer):
    tasks = (await peer.rpc("ListTasks", {"contextId": "ctx-left"}))["tasks"]
    return tasks and tasks[0]["id"]
