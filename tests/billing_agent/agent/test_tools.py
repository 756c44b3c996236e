"""The tools: one tenant's rows or nothing, money as text, misses as results."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.memory import InMemoryMemoryService

from billing_agent import facts
from billing_agent.agent import tools
from billing_agent.agent.assembly import APP_NAME
from billing_agent.agent.tenant import verified_tenant
from billing_agent.errors import TenantMissing
from billing_agent.models import Tenant
from tests.billing_agent.agent.talk import USER, Talk, calls, text


class Context:
    """What a tool sees of an invocation."""

    def __init__(self, metadata):
        self.run_config = RunConfig(custom_metadata=metadata)
        self.state = {}


def on_behalf_of(tenant):
    return Context({"a2a_metadata": {"x-verified-tenant": tenant}})


READING = [
    (tools.get_invoice, {"number": 8812}),
    (tools.list_invoices, {}),
    (tools.compare_line_item, {"number": 8812, "line": "compute"}),
    (tools.audit_invoice, {}),
]


@pytest.mark.parametrize(("tool", "arguments"), READING, ids=lambda value: str(value))
@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"a2a_metadata": {}},
        {"a2a_metadata": None},
        {"a2a_metadata": {"x-verified-tenant": ""}},
        {"a2a_metadata": {"x-verified-tenant": None}},
        {"a2a_metadata": {"x-verified-tenant": ["acme"]}},
        {"a2a_metadata": {"X-Verified-Tenant": "acme"}},
        {"a2a_metadata": {"tenant": "acme"}},
        {"x-verified-tenant": "acme"},
    ],
    ids=str,
)
async def test_a_tool_without_a_verified_tenant_refuses(tool, arguments, metadata):
    # No database either: it must refuse before it reads.
    with pytest.raises(TenantMissing):
        await tool(**arguments, tool_context=Context(metadata))


def test_an_invocation_without_run_config_has_no_tenant():
    context = Context(None)
    context.run_config = None
    with pytest.raises(TenantMissing):
        verified_tenant(context)


async def test_a_missing_tenant_ends_the_run(seeded, announced):
    talk = Talk(tenant=None)
    with pytest.raises(TenantMissing):
        await talk.say("Why was invoice 8812 higher than last month?")
    assert [f.tenant for f in announced if isinstance(f, facts.ToolCalled)] == [""]
    stored = (await talk.session()).events
    assert not any(event.get_function_responses() for event in stored)


async def test_get_invoice_has_lines_changes_and_the_month_before(seeded):
    answer = await tools.get_invoice(8812, on_behalf_of("acme"))
    assert {key: value for key, value in answer.items() if key != "lines"} == {
        "number": 8812,
        "period": "2026-06",
        "total": "4310.20",
        "previous": 8767,
        "previous_total": "3182.40",
        "change": "1127.80",
    }
    assert answer["lines"][0] == {
        "line": "compute",
        "amount": "2960.00",
        "previous_amount": "1905.00",
        "change": "1055.00",
        "quantity": "1480.00",
        "unit": "h",
        "rate": "2.00",
    }
    assert [(row["line"], row["change"]) for row in answer["lines"]] == [
        ("compute", "1055.00"),
        ("storage", "32.80"),
        ("egress", "40.00"),
        ("support", "0.00"),
    ]


async def test_the_two_8812_differ(seeded):
    acme = await tools.get_invoice(8812, on_behalf_of("acme"))
    globex = await tools.get_invoice(8812, on_behalf_of("globex"))
    assert acme["total"] != globex["total"]
    assert {row["amount"] for row in acme["lines"]}.isdisjoint(
        row["amount"] for row in globex["lines"]
    )


@pytest.mark.parametrize("number", [8812, 8812.0, "8812"])
@pytest.mark.case(7)
async def test_a_whole_number_is_taken_in_any_form(seeded, number):
    answer = await tools.get_invoice(number, on_behalf_of("acme"))
    assert json.dumps(answer["number"]) == "8812"


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (9999, "no invoice 9999"),
        (8775, "no invoice 8775"),
        (-1, "no invoice -1"),
        (10**30, f"no invoice {10**30}"),
        (8812.5, "an invoice number is a whole number, not 8812.5"),
        (True, "an invoice number is a whole number, not True"),
        (
            "8812; drop table",
            "an invoice number is a whole number, not '8812; drop table'",
        ),
        (None, "an invoice number is a whole number, not None"),
        (float("nan"), "an invoice number is a whole number, not nan"),
    ],
)
async def test_an_unknown_invoice_is_a_result(seeded, number, error):
    answer = await tools.get_invoice(number, on_behalf_of("acme"))
    assert answer == {"error": error}


async def test_the_first_invoice_has_no_changes(seeded):
    answer = await tools.get_invoice(7777, on_behalf_of("acme"))
    assert "previous" not in answer
    assert all("change" not in row for row in answer["lines"])


async def test_a_comparison_has_both_sides(seeded):
    answer = await tools.compare_line_item(8812, "Compute", on_behalf_of("acme"))
    assert answer == {
        "number": 8812,
        "period": "2026-06",
        "previous": 8767,
        "previous_period": "2026-05",
        "line": "compute",
        "amount": "2960.00",
        "previous_amount": "1905.00",
        "change": "1055.00",
        "quantity": "1480.00",
        "previous_quantity": "952.50",
        "unit": "h",
        "rate": "2.00",
        "previous_rate": "2.00",
    }


async def test_a_line_that_is_not_metered_has_amounts_only(seeded):
    answer = await tools.compare_line_item(8812, "storage", on_behalf_of("acme"))
    assert answer["change"] == "32.80"
    assert "quantity" not in answer


async def test_any_two_invoices_can_be_compared(seeded):
    answer = await tools.compare_line_item(
        8812, "egress", on_behalf_of("acme"), against=8722.0
    )
    assert (answer["previous"], answer["previous_amount"]) == (8722, "497.10")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((8812, "catering"), "invoice 8812 has no line 'catering'"),
        ((7777, "compute"), "invoice 7777 is the first, nothing comes before it"),
        ((9999, "compute"), "no invoice 9999"),
    ],
)
async def test_a_comparison_that_misses_is_a_result(seeded, arguments, error):
    answer = await tools.compare_line_item(*arguments, on_behalf_of("acme"))
    assert answer == {"error": error}


async def test_the_invoice_compared_with_must_be_the_tenants_own(seeded):
    answer = await tools.compare_line_item(
        8812, "compute", on_behalf_of("acme"), against=8775
    )
    assert answer == {"error": "no invoice 8775"}


async def test_a_listing_counts_all_and_shows_the_newest(seeded):
    answer = await tools.list_invoices(on_behalf_of("acme"), newest=2)
    assert answer["count"] == 24
    assert answer["invoices"] == [
        {"number": 8812, "period": "2026-06", "total": "4310.20"},
        {"number": 8767, "period": "2026-05", "total": "3182.40"},
    ]
    everything = await tools.list_invoices(on_behalf_of("acme"), newest=1000)
    totals = [Decimal(row["total"]) for row in everything["invoices"]]
    assert Decimal(answer["total"]) == sum(totals)


async def test_a_listing_of_no_use_still_shows_one(seeded):
    answer = await tools.list_invoices(on_behalf_of("acme"), newest=-3)
    assert len(answer["invoices"]) == 1


@pytest.fixture
def empty_tenant(committed):
    Tenant.objects.create(slug="initech", name="Initech")


async def test_a_tenant_without_invoices_gets_empty_answers(empty_tenant):
    context = on_behalf_of("initech")
    assert await tools.list_invoices(context) == {
        "count": 0,
        "total": "0.00",
        "invoices": [],
    }
    assert "error" in await tools.audit_invoice(context)


async def test_an_audit_names_the_invoice_before(seeded):
    newest = await tools.audit_invoice(on_behalf_of("acme"))
    assert newest == {
        "number": 8812,
        "period": "2026-06",
        "total": "4310.20",
        "findings": [],
        "previous": 8767,
        "largest_rise": {"line": "compute", "change": "1055.00"},
    }
    first = await tools.audit_invoice(on_behalf_of("acme"), number=7777)
    assert "previous" not in first


async def test_ask_user_answers_nothing():
    assert await tools.ask_user("Which line item do you mean?") is None


async def test_preferences_are_bounded_and_not_repeated():
    context = Context(None)
    for number in [*range(30), 29]:
        await tools.remember_preference(f"wish {number}", context)
    kept = (await tools.recall_preferences(context))["preferences"]
    assert kept == [f"wish {number}" for number in range(10, 30)]


async def test_a_preference_is_user_state(seeded):
    talk = Talk()
    await talk.say("Remember that I prefer short answers")
    other = await talk.sessions.create_session(
        app_name=APP_NAME, user_id=USER, session_id="another"
    )
    assert other.state["user:preferences"] == ["I prefer short answers"]


async def test_recall_searches_the_memory_of_the_runner(seeded):
    memory = InMemoryMemoryService()
    talk = Talk(memory=memory)
    await talk.say("Remember that I prefer short answers")
    await memory.add_session_to_memory(await talk.session())
    events = await talk.say("Did we talk about short answers?", session="ctx-42")
    assert calls(events)[0][0] == "recall"
    assert "I prefer short answers" in text(events[-1])


async def test_recall_without_a_memory_service_says_so(seeded):
    events = await Talk().say("Did we talk about egress before?")
    assert "nothing is kept across conversations" in text(events[-1])


async def test_a_tool_is_announced_before_it_runs(seeded, announced):
    await Talk().say("invoice 8812")
    kinds = [type(fact).__name__ for fact in announced]
    assert kinds == ["ModelCalled", "ToolCalled", "ModelCalled"]
    assert announced[1] == facts.ToolCalled("get_invoice", {"number": 8812}, "acme")
