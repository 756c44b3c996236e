"""What a caller learns of another's tasks and conversations: what of an unknown id."""

from __future__ import annotations

import asyncio
import secrets
import uuid

import pytest

from tests.peer import message_params, state, texts
from tests.security.bindings import (
    BINDINGS,
    EVERYWHERE,
    NOT_FOUND,
    RPC,
    ask,
    message,
    refusal,
    result,
)

pytestmark = pytest.mark.processes

QUESTION = "Why was invoice 8812 higher than last month?"
LONG = "audit the last 15 invoices"
ON_A_TASK = ["GetTask", "CancelTask", "SubscribeToTask", "SendMessage"]
STREAMED = ["SendStreamingMessage"]
STRANGERS = [("stranger", "acme"), ("stranger", "globex")]
# What may differ between two answers from one address.
IGNORED = {"date"}


def on(method, task_id, **fields):
    """Return the parameters of a call about a task."""
    if method.startswith("Send"):
        return message("The compute line.", messageId="m-1", taskId=task_id, **fields)
    return {"id": task_id}


def seen(answer, task_id):
    """Return everything an answer says, with the task's id taken out."""
    headers = {k: v for k, v in answer.headers.items() if k not in IGNORED}
    return answer.status_code, headers, answer.text.replace(task_id, "the task")


@pytest.fixture
async def strangers(make_peer):
    """Return a factory: peers of fresh subjects at an address, one for each tenant."""

    async def make(where):
        return [
            await make_peer(where, f"{name}-{secrets.token_hex(4)}", tenant)
            for name, tenant in STRANGERS
        ]

    return make


@pytest.fixture
async def parked(make_peer):
    """A task that waits for an answer, and its owner."""
    owner = await make_peer("router")
    return owner, await owner.send(QUESTION, context_id=f"ctx-{secrets.token_hex(4)}")


@pytest.mark.statement(27)
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_task_of_another_is_a_task_that_is_not_there(
    parked, strangers, where, binding
):
    owner, task = parked
    for stranger in await strangers(where):
        for method in [*ON_A_TASK, *STREAMED]:
            answers = {}
            for task_id in (task["id"], str(uuid.uuid4())):
                answer = await ask(stranger.http, binding, method, on(method, task_id))
                assert refusal(binding, answer) == NOT_FOUND[binding], method
                answers[task_id] = seen(answer, task_id)
            real, unknown = answers.values()
            assert real == unknown, method
    assert await owner.get(task["id"]) == task


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_naming_the_context_too_does_not_help(parked, strangers, where, binding):
    owner, task = parked
    context = task["contextId"]
    for stranger in await strangers(where):
        answers = []
        for task_id in (task["id"], str(uuid.uuid4())):
            answer = await ask(
                stranger.http,
                binding,
                "SendMessage",
                on("SendMessage", task_id, contextId=context),
                X_A2A_Context=context,
            )
            assert refusal(binding, answer) == NOT_FOUND[binding]
            answers.append(seen(answer, task_id))
        assert answers[0] == answers[1]
    assert await owner.get(task["id"]) == task


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_caller_of_the_same_name_in_another_tenant_is_another(make_peer, where):
    name = f"name-{secrets.token_hex(4)}"
    owner = await make_peer("router", name, "acme")
    task = await owner.send(QUESTION, context_id="ctx-41")
    stranger = await make_peer(where, name, "globex")
    for method in [*ON_A_TASK, *STREAMED]:
        answers = []
        for task_id in (task["id"], str(uuid.uuid4())):
            answer = await ask(stranger.http, RPC, method, on(method, task_id))
            assert refusal(RPC, answer) == NOT_FOUND[RPC], method
            answers.append(seen(answer, task_id))
        assert answers[0] == answers[1], method
    assert (await stranger.rpc("ListTasks", {}))["totalSize"] == 0
    said = await stranger.send("The compute line.", context_id="ctx-41")
    assert "no invoice in view" in said["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize("affinity", ["on", "off"])
@pytest.mark.parametrize("named", [True, False])
async def test_router_takes_no_other_way_for_a_task_of_another(
    parked, strangers, affinity, named
):
    """Which replica answers, and why, tells nothing of whether the task exists."""
    _, task = parked
    headers = {"X_Affinity": affinity}
    if named:
        headers["X_A2A_Context"] = task["contextId"]
    for stranger in await strangers("router"):
        answers = []
        for task_id in (task["id"], str(uuid.uuid4())):
            for method in ("GetTask", "CancelTask"):
                params = on(method, task_id)
                answer = await ask(stranger.http, RPC, method, params, **headers)
                answers.append(seen(answer, task_id))
        assert answers[0] == answers[1] == answers[2] == answers[3]


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_running_task_of_another_can_be_neither_heard_nor_stopped(
    make_slow_peer, where
):
    owner = await make_slow_peer("replica-b")
    running = await owner.send(LONG, now=True, output="per-event")
    await owner.until(running["id"], "WORKING")
    for tenant in ("acme", "globex"):
        stranger = await make_slow_peer(where, tenant=tenant)
        for method in [*ON_A_TASK, *STREAMED]:
            answers = []
            for task_id in (running["id"], str(uuid.uuid4())):
                for binding in BINDINGS:
                    params = on(method, task_id)
                    answer = await ask(stranger.http, binding, method, params)
                    assert refusal(binding, answer) == NOT_FOUND[binding], method
                    answers.append(seen(answer, task_id))
            assert answers[:2] == answers[2:], method
    assert state(await owner.until(running["id"])) == "COMPLETED"


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_ended_task_of_another_is_no_different(make_peer, strangers, where):
    owner = await make_peer("router")
    ended = await owner.send("show invoice 8812")
    assert state(ended) == "COMPLETED"
    for stranger in await strangers(where):
        for method in ("CancelTask", "SubscribeToTask", "SendMessage"):
            answers = []
            for task_id in (ended["id"], str(uuid.uuid4())):
                answer = await ask(stranger.http, RPC, method, on(method, task_id))
                assert refusal(RPC, answer) == NOT_FOUND[RPC]
                answers.append(seen(answer, task_id))
            assert answers[0] == answers[1]


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_lists_hold_the_callers_own_tasks_only(parked, strangers, where, binding):
    _, task = parked
    for stranger in await strangers(where):
        for context in (task["contextId"], "ctx-unknown", None):
            params = {"contextId": context} if context else {}
            page = result(
                binding, await ask(stranger.http, binding, "ListTasks", params)
            )
            assert (page["tasks"], page["totalSize"]) == ([], 0)


async def test_page_token_of_another_leads_to_no_task_of_theirs(make_peer):
    owner, stranger = await make_peer("router"), await make_peer("router")
    for _ in range(2):
        await owner.send("hello")
    own = await stranger.send("hello")
    page = await owner.rpc("ListTasks", {"pageSize": 1})
    token = page["nextPageToken"]
    stolen = await stranger.rpc("ListTasks", {"pageToken": token})
    assert {task["id"] for task in stolen["tasks"]} <= {own["id"]}


@pytest.mark.statement(27)
@pytest.mark.statement(28)
@pytest.mark.parametrize("sessions", ["memory", "shared"])
async def test_context_of_another_is_a_conversation_of_ones_own(
    make_peer, strangers, sessions
):
    context = f"ctx-{secrets.token_hex(4)}"
    owner = await make_peer("router")
    wish = "remember that I like figures in euros"
    await owner.send(wish, context_id=context, sessions=sessions)
    asked = await owner.send(QUESTION, context_id=context, sessions=sessions)
    for stranger in await strangers("router"):
        answer = await stranger.send(
            "What do I prefer?", context_id=context, sessions=sessions
        )
        assert texts(answer) == ["I know of no preference of yours."]
        answer = await stranger.send(
            "The compute line.", context_id=context, sessions=sessions
        )
        assert state(answer) == "INPUT_REQUIRED"
        assert "no invoice in view" in answer["status"]["message"]["parts"][0]["text"]
    answer = await owner.send(
        "The compute line.",
        context_id=context,
        task_id=asked["id"],
        sessions=sessions,
    )
    assert "1,055.00" in texts(answer)[0]


async def test_memory_of_another_is_not_recalled(make_peer, strangers):
    context = f"ctx-{secrets.token_hex(4)}"
    owner = await make_peer("router")
    await owner.send("Show invoice 8812", context_id=context)
    question = "Did we talk about invoice 8812?"
    recalled = await owner.send(question, context_id=context)
    assert texts(recalled)[0].startswith("I recall:")
    for stranger in await strangers("router"):
        recalled = await stranger.send(question, context_id=context)
        assert texts(recalled) == ["I recall nothing about that."]


async def test_ledger_holds_the_callers_own_sessions_only(make_peer, strangers):
    owner = await make_peer("replica-a")
    context = f"ctx-{secrets.token_hex(4)}"
    await owner.send("hello", context_id=context)
    for stranger in await strangers("replica-a"):
        stores = (await stranger.http.get("/demo/ledger")).json()["stores"]
        assert [store["sessions"] for store in stores] == [[], []]


@pytest.mark.statement(40)
async def test_the_very_send_of_another_is_a_new_one(make_peer, strangers):
    """Message, context and parts alike: the answer is not the other's task."""
    owner = await make_peer("router")
    params, _ = message_params("show invoice 8812", context_id="ctx-41")
    theirs = (await owner.rpc("SendMessage", params))["task"]
    for stranger in await strangers("router"):
        own = (await stranger.rpc("SendMessage", params))["task"]
        assert own["id"] != theirs["id"]


async def test_turn_of_another_does_not_wait_for_ours(make_slow_peer):
    """The same context id of two callers is two conversations."""
    owner = await make_slow_peer("router")
    stranger = await make_slow_peer("router")
    running = await owner.send(LONG, context_id="ctx-41", now=True)
    await stranger.send("hello", context_id="ctx-41")
    assert state(await owner.get(running["id"])) == "WORKING"
    await owner.cancel(running["id"])


async def test_many_strangers_at_once_find_nothing(parked, make_peer):
    owner, task = parked
    peers = [await make_peer(where) for where in EVERYWHERE for _ in range(3)]
    calls = [
        ask(peer.http, binding, method, on(method, task["id"]))
        for peer in peers
        for binding in BINDINGS
        for method in ON_A_TASK
    ]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {200, 404}
    assert all("error" in answer.json() for answer in answers)
    assert await owner.get(task["id"]) == task
