"""The scripted model as ADK sees it: one reply, streamed on request, cancellable."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from billing_agent import facts
from billing_agent.agent.scripted_model import ScriptedModel
from tests.billing_agent.agent.talk import Talk, text

HISTORY = types.Content(
    role="user",
    parts=[
        types.Part(
            function_response=types.FunctionResponse(
                name="get_invoice",
                response={
                    "number": 7,
                    "period": "2026-06",
                    "total": "1.00",
                    "lines": [{"line": "compute", "amount": "1.00"}],
                },
            )
        )
    ],
)


def request(*texts, history=()):
    spoken = [
        types.Content(role="user", parts=[types.Part(text=words)]) for words in texts
    ]
    return LlmRequest(contents=[*history, *spoken])


async def replies(model, llm_request, *, stream=False):
    return [
        reply
        async for reply in model.generate_content_async(llm_request, stream=stream)
    ]


def words(reply):
    return "".join(part.text for part in reply.content.parts if part.text)


async def test_a_reply_is_one_complete_response():
    (reply,) = await replies(ScriptedModel(), request("hello"))
    assert not reply.partial
    assert reply.finish_reason is types.FinishReason.STOP
    assert words(reply)


async def test_only_the_contents_decide():
    model = ScriptedModel()
    (with_history,) = await replies(model, request("show it", history=[HISTORY]))
    (without,) = await replies(model, request("show it"))
    assert "Invoice 7" in words(with_history)
    assert without.content.parts[0].function_call.name == "ask_user"


async def test_streamed_words_add_up_to_the_reply():
    *partial, last = await replies(
        ScriptedModel(), request("Why was invoice 7 higher?"), stream=True
    )
    assert len(partial) > 3
    assert all(reply.partial for reply in partial)
    assert not last.partial
    assert "".join(map(words, partial)) == words(last)
    assert last.content.parts[-1].function_call.name == "get_invoice"


async def test_a_streamed_reply_without_words_is_one_response():
    (reply,) = await replies(ScriptedModel(), request("why higher?"), stream=True)
    assert reply.content.parts[0].function_call.name == "ask_user"


async def test_tokens_are_reported_and_grow_with_the_history():
    model = ScriptedModel()
    (short,) = await replies(model, request("hello"))
    (longer,) = await replies(model, request("hello " * 100, history=[HISTORY]))
    usage = short.usage_metadata
    assert usage.prompt_token_count > 0
    assert usage.candidates_token_count > 0
    assert usage.total_token_count == (
        usage.prompt_token_count + usage.candidates_token_count
    )
    assert longer.usage_metadata.prompt_token_count > usage.prompt_token_count + 100


async def test_latency_is_the_setting_unless_given(settings, monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    settings.SCRIPTED_MODEL_LATENCY = 0.25
    await replies(ScriptedModel(), request("hello"))
    await replies(ScriptedModel(latency=1.5), request("hello"))
    assert slept == [0.25, 1.5]


async def test_latency_is_spread_over_a_stream(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    *partial, _ = await replies(ScriptedModel(latency=2.0), request("hi"), stream=True)
    assert len(slept) == len(partial)
    assert sum(slept) == pytest.approx(2.0)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cancel_ends_the_call_at_once(stream):
    model = ScriptedModel(latency=3600)
    calling = asyncio.ensure_future(replies(model, request("hello"), stream=stream))
    await asyncio.sleep(0)
    calling.cancel()
    done, _ = await asyncio.wait({calling}, timeout=5)
    assert calling in done
    assert calling.cancelled()


async def test_an_audit_can_be_cancelled_inside_a_model_call(seeded, settings):
    heard = []
    fourth = asyncio.Event()

    async def listen(sender, fact, source, **kwargs):
        heard.append(fact)
        if isinstance(fact, facts.ModelCalled) and fact.call == 4:
            settings.SCRIPTED_MODEL_LATENCY = 3600
            fourth.set()

    facts.origin.set(facts.Origin("replica-a", "orchestrator"))
    facts.announced.connect(listen)
    audit = asyncio.ensure_future(Talk().say("Audit all invoices"))
    await asyncio.wait_for(fourth.wait(), 10)
    audit.cancel()
    await asyncio.wait({audit}, timeout=5)
    facts.announced.disconnect(listen)
    assert audit.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    calls = [fact.call for fact in heard if isinstance(fact, facts.ModelCalled)]
    assert calls == [1, 2, 3, 4]


@pytest.mark.statement(16)
async def test_a_run_streams_partial_events_when_asked_to(seeded):
    events = await Talk(streaming=True).say("invoice 8812")
    partial = [event for event in events if event.partial]
    complete = [event for event in events if not event.partial]
    assert partial
    assert [bool(event.get_function_calls()) for event in complete] == [
        True,
        False,
        False,
    ]
    streamed = "".join(text(event) for event in partial)
    assert streamed == text(complete[0]) + text(complete[-1])


async def test_partial_events_are_not_kept(seeded):
    streaming, plain = Talk(streaming=True), Talk()
    for talk in (streaming, plain):
        await talk.say("invoice 8812")
    kept = (await streaming.session()).events
    assert len(kept) == len((await plain.session()).events)
