"""The two-turn conversation through two real processes, and what it hangs on."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from a2a.types import TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToDict, ParseDict

from orchestrator.reply import function_response
from tests.peer import Refused, state, texts

pytestmark = pytest.mark.processes

QUESTION = "Why was invoice 8812 higher than last month?"
LINE = "The compute line."


async def ledger(*peers):
    """Return what the peers' replicas hold: rows by (replica, store)."""
    held = {}
    for peer in peers:
        answer = (await peer.http.get("/demo/ledger")).json()
        for store in answer["stores"]:
            held[answer["replica"], store["store"]] = store["sessions"]
    return held


@pytest.fixture
async def replicas(make_peer):
    """Both replicas, as one fresh subject."""
    subject = f"two-{secrets.token_hex(4)}"
    a = await make_peer("replica-a", subject)
    return a, await make_peer("replica-b", subject)


@pytest.mark.case(1)
@pytest.mark.statement(28)
@pytest.mark.statement(37)
@pytest.mark.parametrize("sessions", ["memory", "shared"])
async def test_two_turns_on_one_replica_answer_from_one_session(replicas, sessions):
    a, b = replicas
    asked = await b.send(QUESTION, context_id="ctx-41", sessions=sessions)
    assert state(asked) == "INPUT_REQUIRED"
    question = asked["status"]["message"]["parts"][0]["text"]

    answered = await b.send(
        LINE, context_id="ctx-41", task_id=asked["id"], sessions=sessions
    )

    assert state(answered) == "COMPLETED"
    assert answered["id"] == asked["id"]
    assert question not in texts(answered)
    assert "1,055.00" in texts(answered)[0]
    held = await ledger(a, b)
    rows = held["replica-b", sessions]
    assert [(row["user"], row["session_id"]) for row in rows] == [
        ("A2A_USER_ctx-41", "ctx-41")
    ]
    assert held["replica-a", "memory"] == []


@pytest.mark.statement(28)
@pytest.mark.parametrize(
    ("sessions", "outcome"), [("memory", "INPUT_REQUIRED"), ("shared", "COMPLETED")]
)
async def test_the_second_turn_on_the_other_replica(replicas, sessions, outcome):
    a, b = replicas
    asked = await b.send(QUESTION, context_id="ctx-41", sessions=sessions)

    answered = await a.send(
        LINE, context_id="ctx-41", task_id=asked["id"], sessions=sessions
    )

    assert state(answered) == outcome
    assert answered["id"] == asked["id"]


@pytest.mark.statement(28)
@pytest.mark.parametrize("sessions", ["memory", "shared"])
async def test_without_the_hook_the_right_replica_does_not_help(replicas, sessions):
    a, b = replicas
    switches = {"continuity": "off", "sessions": sessions}
    asked = await b.send(QUESTION, context_id="ctx-41", **switches)

    again = await b.send(LINE, context_id="ctx-41", task_id=asked["id"], **switches)

    assert state(again) == "INPUT_REQUIRED"
    rows = (await ledger(a, b))["replica-b", sessions]
    assert len(rows) == 2
    assert "ctx-41" not in {row["session_id"] for row in rows}


@pytest.mark.statement(29)
@pytest.mark.parametrize("sessions", ["memory", "shared"])
async def test_fifty_concurrent_first_messages_over_both_replicas(replicas, sessions):
    a, b = replicas
    tasks = await asyncio.gather(
        *(
            peer.send("list my invoices", context_id="ctx-41", sessions=sessions)
            for peer in (a, b) * 25
        )
    )

    assert {state(task) for task in tasks} == {"COMPLETED"}
    held = await ledger(a, b)
    if sessions == "shared":
        rows = [held["replica-a", "shared"], held["replica-b", "shared"]]
        assert rows[0] == rows[1]
        (row,) = rows[0]
        assert (row["session_id"], row["events"]) == ("ctx-41", 50 * 4)
    else:
        for replica in ("replica-a", "replica-b"):
            (row,) = held[replica, "memory"]
            assert (row["session_id"], row["events"]) == ("ctx-41", 25 * 4)


@pytest.mark.statement(38)
async def test_a_follow_up_may_name_its_task_only(replicas):
    a, _ = replicas
    asked = await a.send(QUESTION, context_id="ctx-41")

    answered = await a.send(LINE, task_id=asked["id"])

    assert state(answered) == "COMPLETED"
    assert answered["contextId"] == "ctx-41"


@pytest.mark.statement(48)
async def test_a_function_response_to_a_received_question_continues_its_task(replicas):
    a, _ = replicas
    async with a.stream(QUESTION, context_id="ctx-41") as events:
        received = [event async for event in events][-1]
    asked = ParseDict(received["statusUpdate"], TaskStatusUpdateEvent())

    reply = function_response(asked, "ask_user", {"answer": LINE})
    message = MessageToDict(reply)
    answered = (await a.rpc("SendMessage", {"message": message}))["task"]

    assert message["taskId"] == received["statusUpdate"]["taskId"]
    assert message["contextId"] == "ctx-41"
    assert message["parts"][0]["data"]["response"] == {"answer": LINE}
    assert answered["id"] == message["taskId"]
    assert state(answered) == "COMPLETED"
    assert "1,055.00" in texts(answered)[0]


@pytest.mark.case(2)
@pytest.mark.statement(38)
async def test_a_task_with_another_context_is_refused_and_stays_as_it_is(replicas):
    a, _ = replicas
    asked = await a.send(QUESTION, context_id="ctx-41")

    with pytest.raises(Refused) as refused:
        await a.send(LINE, context_id="ctx-42", task_id=asked["id"])

    assert refused.value.code == -32602
    assert await a.get(asked["id"]) == asked


@pytest.mark.statement(38)
@pytest.mark.parametrize(
    "context_id", ["c" * 129, "ctx\u0007", " ctx-41", "ctx-41 ", "  "]
)
async def test_a_context_the_store_cannot_take_is_refused(replicas, context_id):
    a, _ = replicas

    with pytest.raises(Refused) as refused:
        await a.send(QUESTION, context_id=context_id)

    assert refused.value.code == -32602
    assert (await a.rpc("ListTasks", {}))["tasks"] == []


@pytest.mark.statement(38)
@pytest.mark.parametrize("given", [None, ""])
async def test_a_send_without_context_gets_one_that_can_be_continued(replicas, given):
    a, _ = replicas
    asked = await a.send(QUESTION, context_id=given)
    assert asked["contextId"]

    answered = await a.send(LINE, context_id=asked["contextId"], task_id=asked["id"])

    assert state(answered) == "COMPLETED"


@pytest.mark.case(3)
@pytest.mark.statement(39)
async def test_a_message_to_a_task_finished_elsewhere_is_refused(replicas):
    a, b = replicas
    asked = await a.send(QUESTION, context_id="ctx-41")
    done = await b.send(LINE, context_id="ctx-41", task_id=asked["id"])
    assert state(done) == "COMPLETED"

    for peer in (a, b):
        with pytest.raises(Refused) as refused:
            await peer.send("And now?", context_id="ctx-41", task_id=asked["id"])
        assert refused.value.code == -32004

    assert await a.get(asked["id"]) == done


@pytest.mark.case(7)
async def test_a_number_in_a_data_part_is_an_invoice_number(replicas):
    a, _ = replicas
    parts = [{"data": {"invoice": 8812}}, {"text": "Show me this invoice"}]

    shown = await a.send("", parts=parts)

    assert state(shown) == "COMPLETED"
    said = " ".join(texts(shown))
    assert "8812" in said
    assert "8812.0" not in said


@pytest.mark.parametrize("method", ["send", "stream"])
async def test_an_unknown_switch_is_named_and_creates_nothing(replicas, method):
    a, _ = replicas
    for switches, word in [({"speed": "fast"}, "speed"), ({"output": "all"}, "all")]:
        with pytest.raises(Refused) as refused:
            if method == "send":
                await a.send(QUESTION, **switches)
            else:
                async with a.stream(QUESTION, **switches) as events:
                    await anext(events)
        assert refused.value.code == -32602
        assert word in refused.value.message
    assert (await a.rpc("ListTasks", {}))["tasks"] == []


async def test_no_token_is_refused_before_a_task_exists(replicas):
    a, _ = replicas
    del a.http.headers["Authorization"]

    answer = await a.http.post("/a2a/", json={"jsonrpc": "2.0", "id": 7})

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["X-Replica"] == "replica-a"
