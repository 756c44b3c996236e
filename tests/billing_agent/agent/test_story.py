"""The story through a real runner: what the agent asks, answers and remembers."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal

import pytest
from google.genai import types

from billing_agent import facts
from billing_agent.agent.script import REMARK, WHICH_LINE
from billing_agent.executor import pending
from billing_agent.models import Invoice, LineItem, Tenant
from tests.billing_agent.agent.talk import Talk, calls, question, text

FIRST = "Why was invoice 8812 higher than last month?"
SECOND = "The compute line."


def first_calls(heard):
    return [f for f in heard if isinstance(f, facts.ModelCalled) and f.call == 1]


@pytest.mark.statement(36)
async def test_turn_one_leaves_exactly_four_events(seeded):
    talk = Talk()
    await talk.say(FIRST)
    user, call, response, asked = (await talk.session()).events
    assert user.author == "user"
    assert calls([call]) == [("get_invoice", {"number": 8812})]
    assert response.get_function_responses()[0].name == "get_invoice"
    assert calls([asked]) == [("ask_user", {"question": WHICH_LINE})]
    assert asked.is_final_response()


async def test_the_remark_stands_beside_the_first_call_only(seeded):
    events = await Talk().say(FIRST)
    assert REMARK in text(events[0])
    assert "renewal at risk, do not volunteer a discount" in REMARK
    assert all(REMARK not in text(event) for event in events[1:])


@pytest.mark.parametrize("delivered", [False, True], ids=["text", "response"])
@pytest.mark.statement(37)
async def test_turn_two_sees_five_events_and_answers(seeded, announced, delivered):
    talk = Talk()
    await talk.say(FIRST)
    parts = [types.Part(text=SECOND)]
    if delivered:
        (waiting,) = pending.open_calls((await talk.session()).events)
        parts = pending.answer(waiting, types.Content(role="user", parts=parts)).parts
    events = await talk.say(*parts)
    assert [fact.events_seen for fact in first_calls(announced)] == [1, 5]
    assert calls(events) == [("compare_line_item", {"number": 8812, "line": "compute"})]
    assert text(events[-1]) == (
        "Compute rose by 1,055.00 between invoice 8767 and invoice 8812: from 952.5 to"
        " 1,480 hours at an unchanged rate of 2.00."
    )
    assert len((await talk.session()).events) == 8


async def test_a_forgotten_history_causes_the_question_again(seeded, announced):
    talk = Talk()
    await talk.say(FIRST, session="generated-1")
    events = await talk.say(SECOND, session="generated-2")
    assert question(events).startswith(WHICH_LINE)
    assert "no invoice" in question(events)
    assert [fact.events_seen for fact in first_calls(announced)] == [1, 1]
    assert calls(events[:-1]) == []


async def test_the_forgotten_line_is_taken_up_once_the_invoice_is_named(seeded):
    talk = Talk()
    await talk.say(SECOND)
    events = await talk.say("The one of invoice 8812.")
    assert text(events[-1]).startswith("Compute rose by 1,055.00")


async def test_a_third_turn_goes_on_with_the_invoice_in_view(seeded):
    talk = Talk()
    await talk.say(FIRST)
    await talk.say(SECOND)
    events = await talk.say("and the storage line?")
    assert calls(events) == [("compare_line_item", {"number": 8812, "line": "storage"})]
    assert text(events[-1]).startswith("Storage rose by 32.80")


@pytest.mark.statement(37)
async def test_the_forked_history_answers_the_third_turn_from_the_first(seeded):
    talk = Talk()
    await talk.say(FIRST)
    session = await talk.session()
    await pending.close(talk.sessions, session, pending.open_calls(session.events))
    events = await talk.say("and the storage line?")
    assert text(events[-1]).startswith("Storage rose by 32.80")


async def test_each_tenant_gets_its_own_8812(seeded):
    answers = {}
    for tenant in ("acme", "globex"):
        talk = Talk(tenant)
        assert question(await talk.say(FIRST)) == WHICH_LINE
        answers[tenant] = text((await talk.say(SECOND))[-1])
    assert "1,055.00" in answers["acme"]
    assert "1,055.00" not in answers["globex"]
    assert "unchanged rate of 1.80" in answers["globex"]


async def test_a_number_of_another_tenant_is_unknown(seeded):
    events = await Talk("acme").say("Why was invoice 8775 higher?")
    assert text(events[-1]) == "I cannot answer that: no invoice 8775."
    assert len(calls(events)) == 1


@pytest.fixture(params=range(4))
def shuffled(request, committed):
    """Two invoices of a tenant with other numbers, lines and figures."""
    chance = random.Random(request.param)  # noqa: S311
    lines = chance.sample(["seats", "gpu", "backups", "tokens", "traffic"], 4)
    before, number = sorted(chance.sample(range(100, 99_999), 2))
    tenant = Tenant.objects.create(slug="initech", name="Initech")
    rate = Decimal(chance.randrange(100, 900)) / 100
    hours = [Decimal(chance.randrange(100, 500)), Decimal(chance.randrange(500, 900))]
    for month, invoice_number in enumerate((before, number)):
        invoice = Invoice.objects.create(
            tenant=tenant, number=invoice_number, period=date(2025, 3 + month, 1)
        )
        for position, name in enumerate(lines):
            metered = position == 0
            LineItem.objects.create(
                invoice=invoice,
                position=position,
                name=name,
                quantity=hours[month] if metered else None,
                unit="h" if metered else "",
                rate=rate if metered else None,
                amount=hours[month] * rate if metered else 100 + month * position,
            )
    rise = (hours[1] - hours[0]) * rate
    return number, before, lines[0], rise


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Why was invoice {number} higher than last month?", "The {line} line."),
        ("What drove bill #{number} up?", "{line}, please"),
        ("explain the increase of {number}", "line item {line}"),
        ("Invoice no. {number} is more expensive than before, how come?", "{LINE}!"),
    ],
)
async def test_the_story_works_on_a_shuffled_fixture(shuffled, first, second):
    number, before, line, rise = shuffled
    talk = Talk("initech")
    assert question(await talk.say(first.format(number=number))) == WHICH_LINE
    events = await talk.say(second.format(line=line, LINE=line.upper()))
    assert calls(events) == [("compare_line_item", {"number": number, "line": line})]
    assert text(events[-1]).startswith(
        f"{line.capitalize()} rose by {rise:,.2f} between invoice {before} and"
    )


async def test_a_line_named_at_once_is_not_asked_for(seeded):
    events = await Talk().say("Why did the egress line of invoice 8812 go up?")
    assert [name for name, _ in calls(events)] == ["get_invoice", "compare_line_item"]
    assert text(events[-1]).startswith("Egress rose by 40.00")


async def test_the_largest_mover_can_be_asked_for(seeded):
    events = await Talk().say("Which line of invoice 8812 rose most?")
    assert text(events[-1]).startswith("Compute rose by 1,055.00")


async def test_all_lines_can_be_asked_for(seeded):
    talk = Talk()
    await talk.say(FIRST)
    events = await talk.say("All of them.")
    assert text(events[-1]) == (
        "From invoice 8767 to invoice 8812 the total rose by 1,127.80: compute rose"
        " by 1,055.00, storage rose by 32.80, egress rose by 40.00, support did not"
        " change."
    )


async def test_a_line_the_invoice_does_not_have_is_asked_for_again(seeded):
    talk = Talk()
    await talk.say(FIRST)
    asked = question(await talk.say("The catering line."))
    assert asked.startswith(WHICH_LINE)
    assert "compute, storage, egress and support" in asked
    assert "Support did not change" in text((await talk.say("Support, then."))[-1])


async def test_two_invoices_named_are_compared_with_each_other(seeded):
    events = await Talk().say("Compare the egress line of 8812 with invoice 8722")
    arguments = {"number": 8812, "against": 8722, "line": "egress"}
    assert calls(events)[-1] == ("compare_line_item", arguments)
    assert "between invoice 8722 and invoice 8812" in text(events[-1])


async def test_the_first_invoice_has_nothing_to_compare_with(seeded):
    events = await Talk().say("Why was invoice 7777 higher?")
    assert text(events[-1]).startswith("Invoice 7777 is the first")


async def test_no_invoice_named_asks_which_one(seeded):
    talk = Talk()
    assert question(await talk.say("Why is my bill higher?")) == (
        "Which invoice do you mean?"
    )
    assert question(await talk.say("8812")) == WHICH_LINE


async def test_another_invoice_can_be_asked_about_while_a_question_is_open(seeded):
    talk = Talk()
    await talk.say(FIRST)
    events = await talk.say("What is the total of invoice 8767?")
    assert text(events[-1]).startswith("Invoice 8767 (May 2026) totals 3,182.40")


async def test_invoices_are_listed(seeded):
    events = await Talk().say("Show me the last 2 invoices")
    assert calls(events) == [("list_invoices", {"newest": 2})]
    assert text(events[-1]).endswith(
        "the newest 2: 8812 (June 2026) 4,310.20; 8767 (May 2026) 3,182.40."
    )


async def test_the_newest_invoice_is_looked_up(seeded):
    events = await Talk().say("What's the total of my latest invoice?")
    assert [name for name, _ in calls(events)] == ["list_invoices", "get_invoice"]
    assert "totals 4,310.20" in text(events[-1])


async def test_an_audit_costs_one_model_call_for_each_invoice(seeded, announced):
    events = await Talk().say("Audit the last 5 invoices")
    assert [name for name, _ in calls(events)] == ["audit_invoice"] * 5
    asked = [fact.call for fact in announced if isinstance(fact, facts.ModelCalled)]
    assert asked == [1, 2, 3, 4, 5, 6]  # one an invoice, one for the summary
    assert text(events[-1]) == (
        "Audited 5 invoices, 8632 to 8812: every metered line adds up. Largest rise:"
        " compute rose by 1,055.00 on invoice 8812."
    )


async def test_an_audit_of_everything_ends_with_the_first_invoice(seeded):
    events = await Talk().say("Please audit all my invoices")
    assert len(calls(events)) == 24
    assert text(events[-1]).startswith("Audited 24 invoices, 7777 to 8812")


@pytest.mark.statement(13)
async def test_an_audit_of_24_invoices_meets_a_cap_of_twenty_calls(seeded, announced):
    talk = Talk()
    talk._config.max_llm_calls = 20
    with pytest.raises(Exception, match="20"):
        await talk.say("Audit the last 24 invoices")
    assert sum(isinstance(fact, facts.ToolCalled) for fact in announced) == 20


@pytest.fixture
def miscalculated(seeded):
    lines = LineItem.objects.filter(invoice__tenant="acme", invoice__number=8767)
    lines.filter(name="compute").update(amount=Decimal("1900.00"))


async def test_an_audit_finds_a_line_that_does_not_add_up(miscalculated):
    events = await Talk().say("audit the last two invoices")
    assert "8767: compute is 1900.00, not 1905.00" in text(events[-1])


async def test_a_preference_is_remembered_in_the_conversation(seeded):
    talk = Talk()
    events = await talk.say("Remember that I prefer short answers.")
    assert text(events[-1]) == "I will remember: I prefer short answers."
    assert "I prefer short answers." in text((await talk.say("What do I prefer?"))[-1])


@pytest.mark.case(5)
async def test_a_preference_comes_back_word_for_word(seeded):
    odd = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne"
    events = await Talk().say(f"Remember: {odd}")
    assert text(events[-1]) == f"I will remember: {odd}"


async def test_small_talk_gets_told_what_the_agent_can_do(seeded):
    events = await Talk().say("Hello!")
    assert len(events) == 1
    assert "explain" in text(events[0])
