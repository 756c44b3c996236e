"""Around each call: facts with what was seen, data parts in and out."""

from __future__ import annotations

import json

import pytest
from a2a.types import Part
from django.dispatch import Signal
from google.adk.a2a.converters.part_converter import convert_genai_part_to_a2a_part
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from google.protobuf.json_format import MessageToDict, MessageToJson

from billing_agent import facts
from billing_agent.agent.callbacks import data_part, last_comparison, line_of
from billing_agent.agent.script import REMARK
from tests.billing_agent.agent.talk import Talk, answer_to, text

FIRST = "Why was invoice 8812 higher than last month?"


class Recorder(BaseLlm):
    """A model that is no script: it keeps its requests and replies as told."""

    model: str = "recorder"
    replies: list = []
    seen: list = []

    async def generate_content_async(self, llm_request, stream=False):
        self.seen.append(llm_request.contents)
        yield LlmResponse(
            content=types.Content(role="model", parts=self.replies.pop(0))
        )


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def data_of(event):
    """Return the A2A data parts an event turns into."""
    parts = [convert_genai_part_to_a2a_part(part) for part in event.content.parts]
    return [
        MessageToDict(part.data)
        for part in parts
        if part.WhichOneof("content") == "data"
    ]


async def test_the_final_response_carries_the_comparison(seeded):
    talk = Talk()
    await talk.say(FIRST)
    events = await talk.say("The compute line.")
    (comparison,) = data_of(events[-1])
    assert comparison["line"] == "compute"
    assert comparison["change"] == "1055.00"
    assert [bool(part.text) for part in events[-1].content.parts] == [True, False]


@pytest.mark.case(7)
async def test_numbers_of_the_data_part_are_whole_on_the_wire(seeded):
    talk = Talk()
    await talk.say(FIRST)
    events = await talk.say("The compute line.")
    wire = convert_genai_part_to_a2a_part(events[-1].content.parts[-1])
    assert isinstance(wire, Part)
    number = json.loads(MessageToJson(wire))["data"]["number"]
    assert number == 8812


async def test_the_comparison_comes_with_a_resumed_invocation_too(seeded):
    talk = Talk()
    asked = await talk.say(FIRST)
    events = await talk.say(answer_to(asked, "The compute line."))
    assert len(data_of(events[-1])) == 1


async def test_a_real_model_gets_the_data_part_as_well(seeded):
    model = Recorder(
        replies=[
            [call("compare_line_item", number=8812, line="egress")],
            [types.Part(text="It went up a little.")],
        ]
    )
    events = await Talk(model=model).say("egress of 8812?")
    assert text(events[-1]) == "It went up a little."
    assert data_of(events[-1])[0]["change"] == "40.00"


async def test_only_the_last_comparison_of_the_turn_is_carried(seeded):
    talk = Talk()
    events = await talk.say("compare compute and storage of invoice 8812")
    assert [row["line"] for row in data_of(events[-1])] == ["storage"]
    assert text(events[-1]).startswith("Compute rose")


async def test_a_comparison_of_an_earlier_turn_is_not_carried(seeded):
    talk = Talk()
    await talk.say("Why did the compute line of invoice 8812 rise?")
    events = await talk.say("List my invoices")
    assert data_of(events[-1]) == []


async def test_a_failed_comparison_is_not_carried(seeded):
    model = Recorder(
        replies=[
            [call("compare_line_item", number=8812, line="catering")],
            [types.Part(text="There is no such line.")],
        ]
    )
    events = await Talk(model=model).say("catering of 8812?")
    assert data_of(events[-1]) == []


async def test_intermediate_and_partial_replies_carry_no_data(seeded):
    events = await Talk(streaming=True).say("Why did compute of invoice 8812 rise?")
    assert data_of(events[-1])
    assert all(
        part.inline_data is None
        for event in events[:-1]
        for part in event.content.parts
    )


@pytest.mark.case(7)
async def test_a_callers_data_part_names_the_invoice(seeded):
    talk = Talk()
    events = await talk.say("How much was this?", data_part({"invoice": 8812}))
    assert text(events[-1]).startswith("Invoice 8812 (June 2026) totals 4,310.20")


async def test_a_data_part_alone_is_enough(seeded):
    events = await Talk().say(data_part({"invoice": 8767.0}))
    assert "Invoice 8767" in text(events[-1])


async def test_the_model_gets_data_as_text_and_never_its_own(seeded):
    model = Recorder(
        replies=[
            [call("compare_line_item", number=8812, line="egress")],
            [types.Part(text="Up.")],
            [types.Part(text="Still up.")],
        ]
    )
    talk = Talk(model=model)
    await talk.say("look", data_part({"invoice": 8812}))
    await talk.say("again")
    shown = [part for content in model.seen[-1] for part in content.parts]
    assert '{"invoice": 8812}' in [part.text for part in shown]
    assert all(part.inline_data is None for part in shown)
    stored = [
        part for event in (await talk.session()).events for part in event.content.parts
    ]
    assert sum(part.inline_data is not None for part in stored) == 2


async def test_a_picture_is_left_as_it_is(seeded):
    model = Recorder(replies=[[types.Part(text="Nice.")]])
    picture = types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png"))
    await Talk(model=model).say("look", picture)
    assert model.seen[0][-1].parts[-1].inline_data.data == b"\x89PNG"


async def test_what_the_model_saw_is_announced(seeded, announced):
    talk = Talk()
    await talk.say(FIRST)
    await talk.say("The compute line.")
    seen = [fact for fact in announced if isinstance(fact, facts.ModelCalled)]
    assert [(fact.call, fact.events_seen) for fact in seen] == [
        (1, 1),
        (2, 3),
        (1, 5),
        (2, 7),
    ]
    assert {fact.session_id for fact in seen} == {"ctx-41"}
    assert seen[2].seen == (
        f"user: {FIRST}",
        "billing_agent: calls get_invoice",
        "billing_agent: get_invoice answers",
        "billing_agent: calls ask_user",
        "user: The compute line.",
    )


async def test_a_resumed_invocation_counts_its_calls_from_one(seeded, announced):
    talk = Talk()
    asked = await talk.say(FIRST)
    announced.clear()
    await talk.say(answer_to(asked, "The compute line."))
    seen = [fact for fact in announced if isinstance(fact, facts.ModelCalled)]
    assert [(fact.call, fact.events_seen) for fact in seen] == [(1, 5), (2, 7)]
    assert seen[0].seen[-1] == "user: The compute line."


async def test_working_words_are_not_announced(seeded, announced):
    talk = Talk()
    await talk.say(FIRST)
    await talk.say("The compute line.")
    assert REMARK not in str(announced)


async def test_nothing_is_put_together_when_nobody_listens(seeded, monkeypatch):
    def unwanted(event):
        raise AssertionError("a line was made for nobody")

    monkeypatch.setattr(facts, "announced", Signal())
    monkeypatch.setattr("billing_agent.agent.callbacks.line_of", unwanted)
    await Talk().say("Hello")


def test_a_line_is_short_and_single():
    event = Event(
        author="user",
        content=types.Content(
            role="user", parts=[types.Part(text="why\n\n" + "x " * 99)]
        ),
    )
    assert len(line_of(event)) <= 100
    assert "\n" not in line_of(event)
    assert line_of(event).endswith("…")


def test_an_event_without_content_has_a_line():
    assert line_of(Event(author="user")) == "user:"


def test_no_comparison_in_no_events():
    assert last_comparison([]) is None
