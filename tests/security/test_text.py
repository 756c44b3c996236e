"""Text stays what was sent, on every way through; what no store holds is refused."""

from __future__ import annotations

import json
import re
import secrets
from html import unescape

import httpx
import pytest
from a2a.types import Task

from orchestrator import runs, story
from orchestrator.config import Configuration
from tests.billing_agent.contract.watch import rows
from tests.peer import texts
from tests.security.bindings import BINDINGS, INVALID, REST, RPC, ask, message, refusal

pytestmark = pytest.mark.processes

ODD = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne"
SENT = f"Remember {ODD}"
ECHO = f"I will remember: {ODD}"
CONFIGURATION = {"output": "per-run", "sessions": "shared"}


async def over_rpc(peer, task_id):
    return texts(await peer.get(task_id))


async def over_rest(peer, task_id):
    return texts((await ask(peer.http, REST, "GetTask", {"id": task_id})).json())


async def streamed(peer, binding):
    """Return the texts of the artifacts in a stream, read as an event stream is."""
    params = message(SENT)
    answer = await ask(peer.http, binding, "SendStreamingMessage", params)
    data = re.findall(rb"^data: (.*?)\r?\n", answer.content, re.MULTILINE)
    events = [json.loads(line) for line in data]
    frames = [event["result"] for event in events] if binding == RPC else events
    updates = [frame["artifactUpdate"] for frame in frames if "artifactUpdate" in frame]
    task_id = updates[0]["taskId"]
    said = "".join(
        part["text"] for each in updates for part in each["artifact"]["parts"]
    )
    return task_id, said


@pytest.mark.case(5)
@pytest.mark.parametrize("where", ["router", "replica-a"])
async def test_text_is_the_same_in_every_answer(make_peer, where):
    peer = await make_peer(where)
    sent = await peer.send(SENT)
    assert texts(sent) == await over_rpc(peer, sent["id"]) == [ECHO]
    assert await over_rest(peer, sent["id"]) == [ECHO]
    assert sent["history"][0]["parts"] == [{"text": SENT}]
    for binding in BINDINGS:
        task_id, said = await streamed(peer, binding)
        assert said == ECHO
        assert await over_rpc(peer, task_id) == [ECHO]


@pytest.mark.case(5)
async def test_text_is_the_same_in_every_table(demo, make_peer):
    peer = await make_peer()
    context = f"ctx-{secrets.token_hex(4)}"
    sent = await peer.send(SENT, context_id=context)
    query = "SELECT body FROM billing_agent_a2atask WHERE id = %s"
    stored = Task.FromString((await rows(demo, query, sent["id"]))[0][0])
    assert stored.history[0].parts[0].text == SENT
    assert stored.artifacts[0].parts[0].text == ECHO
    query = "SELECT text FROM billing_agent_auditentry WHERE task_id = %s"
    assert (ECHO,) in await rows(demo, query, sent["id"])
    query = (
        "SELECT event.body FROM billing_agent_adkevent event"
        " JOIN billing_agent_adksession session ON session.id = event.session_id"
        " WHERE session.session_id = %s"
    )
    events = await rows(demo, query, context)
    said = [
        part.get("text")
        for (body,) in events
        for part in (json.loads(body).get("content") or {}).get("parts") or []
    ]
    assert SENT in said
    assert ECHO in said


@pytest.mark.case(5)
async def test_text_is_the_same_on_the_page_and_in_the_run(
    demo, orchestrator, monkeypatch
):
    monkeypatch.setitem(story.TURNS, 1, SENT)
    run = await runs.create(Configuration.parse(CONFIGURATION))
    await story.send_turn(run, 1)
    async with httpx.AsyncClient(base_url=demo.web_url) as http:
        recorded = (await http.get(f"/runs/{run.id}.json")).json()["events"]
        page = (await http.get(f"/runs/{run.id}/walk/5/")).text
    kinds = {event["kind"]: event["data"] for event in recorded}
    assert kinds["message-sent"]["text"] == SENT
    received = [e["data"] for e in recorded if e["kind"] == "event-received"]
    assert [text for data in received for text in data["texts"]] == [ECHO]
    shown = re.findall(r'<p class="text">(.*?)</p>', page, re.DOTALL)
    assert [unescape(text) for text in shown] == [SENT, ECHO]


UNSTORABLE = ["a\0b", "a\ud800b"]
PLACES = {
    "text": lambda bad: message(bad),
    "message id": lambda bad: message(messageId=bad),
    "context id": lambda bad: message(contextId=bad),
    "task id": lambda bad: message(taskId=bad),
    "data": lambda bad: message(parts=[{"data": {"deep": [{"in": bad}]}}]),
    "key of data": lambda bad: message(parts=[{"data": {bad: 1}}]),
    "message metadata": lambda bad: message(metadata={"k": bad}),
    "metadata key": lambda bad: {**message(), "metadata": {bad: "v"}},
    "file name": lambda bad: message(parts=[{"raw": "YQ==", "filename": bad}]),
}


@pytest.mark.case(6)
@pytest.mark.parametrize("where", ["router", "replica-b"])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("binding", BINDINGS)
async def test_text_no_store_can_hold_leaves_nothing_behind(
    demo, make_peer, where, binding, method
):
    subject = f"nul-{secrets.token_hex(4)}"
    peer = await make_peer(where, subject)
    for place, params in PLACES.items():
        for bad in UNSTORABLE:
            answer = await ask(peer.http, binding, method, params(bad))
            assert refusal(binding, answer) == INVALID[binding], place
    assert (await peer.rpc("ListTasks", {}))["totalSize"] == 0
    for table, column in [("a2asend", "owner"), ("adksession", "user_id")]:
        query = f"SELECT 1 FROM billing_agent_{table} WHERE {column} LIKE %s"  # noqa: S608
        assert await rows(demo, query, f"%{subject}%") == []


@pytest.mark.case(6)
@pytest.mark.parametrize("bad", UNSTORABLE)
@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
async def test_id_no_store_can_hold_is_refused(make_peer, method, bad):
    peer = await make_peer()
    answer = await ask(peer.http, RPC, method, {"id": bad})
    assert refusal(RPC, answer) == -32602
    assert answer.json()["id"] == 1
