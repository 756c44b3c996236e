"""The audit hook: one row per call and reply, and nothing internal leaves."""

from __future__ import annotations

import json

import psycopg
import pytest
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskArtifactUpdateEvent,
)
from django.db import connection
from google.adk.events.event import Event
from google.adk.sessions import InMemorySessionService
from google.genai import types
from google.protobuf.json_format import MessageToDict, MessageToJson, ParseDict
from psycopg.conninfo import make_conninfo

from billing_agent.agent.assembly import APP_NAME, build_agent
from billing_agent.agent.database import close_connections, in_database
from billing_agent.agent.script import REMARK
from billing_agent.executor.audit import AuditTrail, entries_of, is_internal, redacted
from billing_agent.executor.config import ExecutorConfig, OutputMode
from billing_agent.executor.lifecycle import Executor
from billing_agent.executor.registry import RunRegistry
from billing_agent.models import AuditEntry
from billing_agent.seed import seed
from billing_agent.stores.pool import open_pool
from tests.billing_agent.executor.conftest import Caller, Collected, LocalTurns

TOKEN = "eyJhbGciOiJSUzI1NiJ9.canary.signature"


@pytest.fixture
def conninfo(transactional_db):
    settings = connection.settings_dict
    yield make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
    )
    close_connections()


@pytest.fixture
async def trail(conninfo):
    pool = await open_pool(conninfo, 2)
    yield AuditTrail(pool, "replica-b")
    await pool.close()


def a_request(text="hello", *, task_id="t-1", metadata=None):
    stamped = {"x-verified-tenant": "acme"} if metadata is None else metadata
    send = SendMessageRequest(
        message=Message(
            message_id=f"m-{text}", role=Role.ROLE_USER, parts=[Part(text=text)]
        ),
        metadata=ParseDict(stamped, SendMessageRequest().metadata),
    )
    return RequestContext(
        call_context=ServerCallContext(
            user=Caller("caller-7"),
            state={"headers": {"authorization": f"Bearer {TOKEN}"}},
        ),
        request=send,
        task_id=task_id,
        context_id="ctx-41",
    )


def an_event(*parts, role="model", **fields):
    content = types.Content(role=role, parts=list(parts))
    return Event(author=APP_NAME, content=content, **fields)


def a_call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def an_update(metadata=None, data=None):
    update = TaskArtifactUpdateEvent(
        task_id="t-1",
        context_id="ctx-41",
        artifact=Artifact(artifact_id="a", parts=[Part(text="words")]),
    )
    if metadata:
        ParseDict(metadata, update.metadata)
        ParseDict(metadata, update.artifact.metadata)
        ParseDict(metadata, update.artifact.parts[0].metadata)
    if data is not None:
        part = update.artifact.parts.add()
        ParseDict(data, part.data)
    return update


async def rows():
    fields = ("action", "tool", "arguments", "text")
    return await in_database(
        lambda: list(AuditEntry.objects.order_by("id").values_list(*fields))
    )


@pytest.mark.statement(47)
def test_a_reply_that_ends_the_run_is_kept_with_its_words():
    (entry,) = entries_of(
        an_event(types.Part(text="Compute rose."), types.Part(text="!"))
    )
    assert (entry.action, entry.text) == ("model-reply", "Compute rose.\n!")


@pytest.mark.statement(47)
def test_working_words_are_counted_but_not_kept():
    event = an_event(types.Part(text=REMARK), a_call("get_invoice", number=8812))
    reply, call = entries_of(event)
    assert (reply.action, reply.text) == ("model-reply", "")
    assert (call.action, call.tool) == ("tool-call", "get_invoice")
    assert json.loads(call.arguments) == {"number": 8812}


@pytest.mark.statement(47)
def test_every_call_of_a_reply_is_an_entry():
    event = an_event(a_call("get_invoice", number=1), a_call("list_invoices"))
    assert [entry.tool for entry in entries_of(event)] == [
        "get_invoice",
        "list_invoices",
    ]


@pytest.mark.statement(47)
@pytest.mark.parametrize(
    "event",
    [
        an_event(types.Part(text="half a"), partial=True),
        an_event(types.Part(text="hm", thought=True)),
        an_event(
            types.Part(function_response=types.FunctionResponse(name="t", response={})),
            role="user",
        ),
        an_event(),
        Event(author=APP_NAME),
    ],
    ids=["partial", "thought", "tool-result", "no-parts", "no-content"],
)
def test_other_events_are_no_entry(event):
    assert entries_of(event) == []


@pytest.mark.statement(47)
async def test_an_entry_says_who_asked_and_what_was_done(trail):
    event = an_event(a_call("get_invoice", number=8812, note="請求書 'x'"))
    assert await trail(a_request(), None, event) is None
    row = await in_database(AuditEntry.objects.get)
    assert (row.replica, row.subject, row.tenant) == (
        "replica-b",
        "caller-7",
        "acme",
    )
    assert (row.context_id, row.task_id) == ("ctx-41", "t-1")
    assert (row.action, row.tool) == ("tool-call", "get_invoice")
    assert row.arguments == {"number": 8812, "note": "請求書 'x'"}
    assert row.at.tzinfo is not None


async def test_one_event_is_one_round_trip(trail, monkeypatch):
    statements = []
    execute = psycopg.AsyncConnection.execute

    async def counted(self, query, *args, **kwargs):
        statements.append(query)
        return await execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", counted)
    event = an_event(types.Part(text="one"), a_call("a"), a_call("b"))
    await trail(a_request(), None, event)
    assert len(statements) == 1
    assert [row[0] for row in await rows()] == ["model-reply", "tool-call", "tool-call"]


async def test_nothing_to_audit_costs_no_statement(trail, monkeypatch):
    async def unwanted(*args, **kwargs):
        raise AssertionError("a statement for nothing")

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", unwanted)
    await trail(a_request(), None, an_event(types.Part(text="half"), partial=True))


@pytest.mark.parametrize("metadata", [{}, {"x-verified-tenant": ["acme"]}], ids=str)
async def test_an_unverified_tenant_is_recorded_as_none(trail, metadata):
    await trail(a_request(metadata=metadata), None, an_event(types.Part(text="hi")))
    assert (await in_database(AuditEntry.objects.get)).tenant == ""


async def test_an_event_that_cannot_be_audited_fails_the_run(trail):
    await trail._pool.close()
    with pytest.raises(psycopg.OperationalError):
        await trail(a_request(), None, an_event(types.Part(text="hi")))


INTERNAL = {
    "x-verified-tenant": "acme",
    "X-Verified-Tenant": "acme",
    "x_verified_tenant": "acme",
    "a2a_metadata": {"x-verified-tenant": "acme"},
    "adk_user_id": "A2A_USER_ctx-41",
    "adk_session_id": "ctx-41",
    "adk_app_name": APP_NAME,
    "adk_invocation_id": "e-1",
    "adk_something_new": "1",
}
KEPT = {"k": "v", "adk_type": "function_call", "adk_thought": True, "thought": True}


@pytest.mark.parametrize("key", INTERNAL)
@pytest.mark.statement(5)
def test_keys_of_the_servers_own_are_internal(key):
    assert is_internal(key)


@pytest.mark.parametrize("key", KEPT)
def test_keys_that_say_what_a_part_is_are_not(key):
    assert not is_internal(key)


@pytest.mark.statement(47)
def test_internal_keys_leave_neither_metadata_nor_data():
    deep = {"list": [{"inner": INTERNAL | KEPT}], **INTERNAL, **KEPT}
    clean = redacted(an_update(INTERNAL | KEPT, deep))
    for struct in (clean.metadata, clean.artifact.metadata):
        assert MessageToDict(struct) == KEPT
    text, data = clean.artifact.parts
    assert MessageToDict(text.metadata) == KEPT
    assert MessageToDict(data.data) == {"list": [{"inner": KEPT}], **KEPT}


def test_an_update_without_internal_keys_leaves_as_it_is():
    update = an_update(KEPT, {"number": 8812, "nested": [1, [2], "x", None, True]})
    assert redacted(update) == update


def test_the_original_update_is_not_touched():
    update = an_update(INTERNAL)
    redacted(update)
    assert "adk_user_id" in update.metadata


@pytest.mark.statement(47)
async def test_an_update_is_redacted_on_its_way(trail):
    leaving = await trail(
        a_request(), an_update(INTERNAL), an_event(types.Part(text="x"))
    )
    assert leaving == an_update()


@pytest.fixture
def seeded(conninfo):
    seed()


@pytest.fixture
def execute(trail):
    """Run one message through a real executor; return what was enqueued."""
    sessions, registry, turns = InMemorySessionService(), RunRegistry(), LocalTurns()

    async def run(text, mode, task_id):
        executor = Executor(
            agent=build_agent(),
            app_name=APP_NAME,
            sessions=sessions,
            store="memory",
            registry=registry,
            turns=turns,
            replica="replica-b",
            config=ExecutorConfig(output_mode=mode, after_event=trail),
        )
        queue = Collected()
        await executor.execute(a_request(text, task_id=task_id), queue)
        return queue.events

    return run


QUESTION = "Why did the compute line of invoice 8812 rise?"


@pytest.mark.parametrize("mode", OutputMode)
@pytest.mark.statement(47)
async def test_a_run_is_audited_the_same_whatever_leaves(seeded, execute, mode):
    await execute(QUESTION, mode, "t-1")
    audited = await rows()
    assert [(action, tool, arguments) for action, tool, arguments, _ in audited] == [
        ("model-reply", "", {}),
        ("tool-call", "get_invoice", {"number": 8812}),
        ("model-reply", "", {}),
        ("tool-call", "compare_line_item", {"number": 8812, "line": "compute"}),
        ("model-reply", "", {}),
    ]
    assert audited[-1][-1].startswith("Compute rose by 1,055.00")


@pytest.mark.statement(47)
async def test_a_question_is_audited_though_nothing_leaves_for_it(seeded, execute):
    await execute("Why was invoice 8812 higher?", OutputMode.PER_RUN, "t-1")
    action, tool, arguments, _ = (await rows())[-1]
    assert (action, tool) == ("tool-call", "ask_user")
    assert arguments == {"question": "Which line item do you mean?"}


@pytest.mark.parametrize("mode", OutputMode)
@pytest.mark.statement(5)
async def test_no_internal_key_is_on_the_wire(seeded, execute, mode):
    events = await execute(QUESTION, mode, "t-1")
    wire = "\n".join(MessageToJson(event) for event in events)
    for key in (
        "verified",
        "a2a_metadata",
        "adk_user",
        "adk_session",
        "adk_app",
        "adk_inv",
    ):
        assert key not in wire
    assert "Compute rose" in wire


@pytest.mark.statement(47)
async def test_neither_token_nor_remark_is_in_the_trail(seeded, execute):
    await execute(QUESTION, OutputMode.PER_EVENT, "t-1")
    everything = await in_database(lambda: list(AuditEntry.objects.values_list()))
    assert TOKEN not in str(everything)
    assert "renewal" not in str(everything)
