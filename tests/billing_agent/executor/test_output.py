from __future__ import annotations

import pytest
from a2a.types import Part
from google.adk.events.event import Event
from google.genai import types
from google.protobuf.json_format import MessageToDict, ParseDict

from billing_agent.executor.config import OutputMode
from tests.billing_agent.executor.conftest import request, says
from tests.billing_agent.executor.shapes import artifacts, shapes

PER_EVENT = {"output_mode": OutputMode.PER_EVENT}


def calls(name: str = "get_invoice") -> Event:
    part = types.Part(function_call=types.FunctionCall(id="c1", name=name, args={}))
    return Event(author="agent", content=types.Content(role="model", parts=[part]))


def flags(updates):
    return [(update.append, update.last_chunk) for update in updates]


def ids(updates):
    return [update.artifact.artifact_id for update in updates]


@pytest.mark.statement(14)
async def test_per_run_releases_the_last_response_once(make_executor, queue):
    script = [says("one"), says("two"), says("three", "and more")]

    await make_executor(script).execute(request(), queue)

    (update,) = artifacts(queue.events)
    assert [part.text for part in update.artifact.parts] == ["three", "and more"]
    assert (update.append, update.last_chunk) == (False, True)
    assert shapes(queue.events)[-1] == "COMPLETED"


@pytest.mark.statement(14)
async def test_per_run_releases_no_call_result_or_thought(make_executor, queue):
    thought = types.Part(text="hm", thought=True)
    answer = says("answer")
    answer.content.parts.insert(0, thought)
    script = [says("let me look"), calls(), answer]

    await make_executor(script).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "artifact(answer)", "COMPLETED"]


@pytest.mark.statement(14)
async def test_per_run_never_falls_back_on_words_before_the_last_response(
    make_executor, queue
):
    working = says("let me look")
    working.content.parts += calls().content.parts
    silent = says("hm")
    silent.content.parts[0].thought = True

    await make_executor([working, silent]).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "COMPLETED"]


@pytest.mark.statement(15)
async def test_per_event_gives_each_complete_event_an_artifact(make_executor, queue):
    await make_executor([says("one"), says("two")], **PER_EVENT).execute(
        request(), queue
    )

    updates = artifacts(queue.events)
    assert len(set(ids(updates))) == 2
    assert flags(updates) == [(False, True), (False, True)]


@pytest.mark.statement(16)
async def test_partial_events_share_an_artifact_the_complete_one_replaces(
    make_executor, queue
):
    script = [says("Hel", partial=True), says("lo", partial=True), says("Hello")]

    await make_executor(script, **PER_EVENT).execute(request(), queue)

    updates = artifacts(queue.events)
    assert len(set(ids(updates))) == 1
    assert flags(updates) == [(False, False), (True, False), (False, True)]


@pytest.mark.statement(17)
async def test_partial_events_are_told_apart_by_author(make_executor, queue):
    script = [
        says("A", author="a", partial=True),
        says("B", author="b"),
        says("A", author="a"),
    ]

    await make_executor(script, **PER_EVENT).execute(request(), queue)

    first, other, last = ids(artifacts(queue.events))
    assert first == last != other


@pytest.mark.statement(19)
async def test_the_first_chunk_that_leaves_opens_the_artifact(make_executor, queue):
    async def drop_first(ctx, update, event):
        return None if update.artifact.parts[0].text == "Hel" else update

    script = [says("Hel", partial=True), says("lo", partial=True), says("Hello")]
    await make_executor(script, after_event=drop_first, **PER_EVENT).execute(
        request(), queue
    )

    assert flags(artifacts(queue.events)) == [(False, False), (False, True)]


@pytest.mark.statement(21)
async def test_only_plain_text_of_custom_metadata_leaves(make_executor, queue):
    event = says("hi", custom_metadata={"k": "v", "n": 1})

    await make_executor([event], **PER_EVENT).execute(
        request(metadata={"x-verified-tenant": "acme"}), queue
    )

    (update,) = artifacts(queue.events)
    assert MessageToDict(update.artifact.metadata) == {"k": "v"}


async def test_per_event_sends_calls_and_thoughts_marked(make_executor, queue):
    thought = says("hm")
    thought.content.parts[0].thought = True

    await make_executor([calls(), thought], **PER_EVENT).execute(request(), queue)

    call, idea = artifacts(queue.events)
    assert MessageToDict(call.artifact.parts[0].metadata) == {
        "adk_type": "function_call"
    }
    assert MessageToDict(idea.artifact.parts[0].metadata) == {
        "thought": True,
        "adk_thought": True,
    }


@pytest.mark.statement(43)
async def test_a_typed_data_part_keeps_its_type_once(make_executor, queue):
    sent = ParseDict(
        {
            "data": {"name": "pay", "args": {"n": 1}, "id": "c9"},
            "metadata": {"adk_type": "function_call"},
        },
        Part(),
    )

    async def echo(ctx):
        event = says("x", author="agent")
        event.content.parts = list(ctx.user_content.parts)
        return event

    # ADK takes no function call from a user; a response goes in and out.
    sent.metadata["adk_type"] = "function_response"
    sent.data.Clear()
    ParseDict({"name": "pay", "response": {"ok": True}, "id": "c9"}, sent.data)
    await make_executor([echo], **PER_EVENT).execute(request(parts=[sent]), queue)

    (update,) = artifacts(queue.events)
    assert MessageToDict(update.artifact.parts[0].metadata) == {
        "adk_type": "function_response"
    }
    assert str(update).count("adk_type") == 1


@pytest.mark.case(7)
async def test_whole_numbers_of_a_data_part_stay_whole(make_executor, queue):
    sent = ParseDict({"data": {"invoice": 8812, "deep": [{"n": 1.5}]}}, Part())
    seen = []

    async def look(ctx):
        seen.append(ctx.user_content.parts[0].inline_data.data)
        return says("ok")

    await make_executor([look]).execute(request(parts=[sent]), queue)

    assert b'{"deep": [{"n": 1.5}], "invoice": 8812}' in seen[0]
