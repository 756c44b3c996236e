"""The seed: the story's figures, two tenants apart, the same every time."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models import Sum

from billing_agent.models import Invoice, LineItem
from billing_agent.seed import BOOKS, LINES, MONTHS, seed

pytestmark = pytest.mark.django_db

WHOLE = len(BOOKS) * MONTHS * len(LINES)


def amounts(tenant, number):
    invoice = Invoice.by_tenant.for_tenant(tenant).get(number=number)
    return {line.name: line.amount for line in invoice.lines.all()}


def everything():
    fields = ("invoice__tenant", "invoice__number", "invoice__period")
    return list(
        LineItem.objects.order_by(
            "invoice__tenant", "invoice__number", "position"
        ).values_list(*fields, "name", "quantity", "unit", "rate", "amount")
    )


def test_every_tenant_has_two_years_of_four_lines():
    assert seed() == WHOLE
    for book in BOOKS:
        invoices = Invoice.by_tenant.for_tenant(book.slug)
        assert invoices.count() >= 24
        assert {tuple(i.lines.values_list("name", flat=True)) for i in invoices} == {
            LINES
        }


def test_acme_has_the_figures_of_the_story():
    seed()
    assert amounts("acme", 8812) == {
        "compute": Decimal("2960.00"),
        "storage": Decimal("610.20"),
        "egress": Decimal("540.00"),
        "support": Decimal("200.00"),
    }
    assert amounts("acme", 8767) == {
        "compute": Decimal("1905.00"),
        "storage": Decimal("577.40"),
        "egress": Decimal("500.00"),
        "support": Decimal("200.00"),
    }
    assert sum(amounts("acme", 8812).values()) == Decimal("4310.20")
    assert sum(amounts("acme", 8767).values()) == Decimal("3182.40")


def test_8767_is_the_month_before_8812():
    seed()
    newest, before = Invoice.by_tenant.for_tenant("acme").order_by("-period")[:2]
    assert (newest.number, before.number) == (8812, 8767)
    assert (newest.period.month - before.period.month) % 12 == 1


def test_compute_of_the_story_is_hours_at_an_unchanged_rate():
    seed()
    lines = LineItem.objects.filter(invoice__tenant="acme", name="compute")
    for number, hours in ((8812, "1480.00"), (8767, "952.50")):
        line = lines.get(invoice__number=number)
        assert (line.quantity, line.rate) == (Decimal(hours), Decimal("2.00"))


def test_both_tenants_own_an_8812_with_different_figures():
    seed()
    acme, globex = amounts("acme", 8812), amounts("globex", 8812)
    assert all(acme[line] != globex[line] for line in LINES)


def test_the_other_months_have_numbers_of_their_own():
    seed()
    acme, globex = (
        set(Invoice.by_tenant.for_tenant(slug).values_list("number", flat=True))
        for slug in ("acme", "globex")
    )
    assert acme & globex == {8812}


def test_metered_lines_are_quantity_times_rate():
    seed()
    metered = LineItem.objects.exclude(rate=None)
    assert metered.count() == len(BOOKS) * MONTHS
    assert all(line.quantity * line.rate == line.amount for line in metered)


def test_no_amount_is_negative_or_zero():
    seed()
    assert not LineItem.objects.filter(amount__lte=0).exists()


def test_seeding_again_creates_nothing(django_assert_num_queries):
    seed()
    before = everything()
    with django_assert_num_queries(len(BOOKS)):
        assert seed() == 0
    assert everything() == before


def test_seeding_is_deterministic():
    seed()
    first = everything()
    Invoice.objects.all().delete()
    seed()
    assert everything() == first


def test_seeding_restores_what_was_deleted_and_leaves_the_rest():
    seed()
    LineItem.objects.filter(invoice__number=8767, name="egress").delete()
    LineItem.objects.filter(invoice__number=8767, name="support").update(amount=1)
    assert seed() == 1
    assert amounts("acme", 8767)["egress"] == Decimal("500.00")
    assert amounts("acme", 8767)["support"] == Decimal(1)


def test_the_command_says_what_it_created():
    out = StringIO()
    call_command("seed", stdout=out)
    call_command("seed", stdout=out)
    assert out.getvalue().splitlines() == [
        f"seed: {WHOLE} invoice lines created",
        "seed: 0 invoice lines created",
    ]


def test_totals_grow_over_the_two_years():
    seed()
    for book in BOOKS:
        invoices = Invoice.by_tenant.for_tenant(book.slug).order_by("period")
        totals = invoices.annotate(total=Sum("lines__amount"))
        assert totals.first().total < totals.last().total
