"""Sentences: every kind of movement in words, figures as the tool gave them."""

from __future__ import annotations

import pytest

from billing_agent.agent import sentences

ROW = {
    "number": 8812,
    "previous": 8767,
    "line": "compute",
    "amount": "2960.00",
    "previous_amount": "1905.00",
    "change": "1055.00",
}
METERED = ROW | {
    "quantity": "1480.00",
    "previous_quantity": "952.50",
    "unit": "h",
    "rate": "2.00",
    "previous_rate": "2.00",
}
HEAD = "Compute rose by 1,055.00 between invoice 8767 and invoice 8812"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW, f"{HEAD}: 1,905.00 then, 2,960.00 now."),
        (METERED, f"{HEAD}: from 952.5 to 1,480 hours at an unchanged rate of 2.00."),
        (
            METERED | {"rate": "3.00"},
            f"{HEAD}: from 952.5 to 1,480 hours at a rate of 3.00 instead of 2.00.",
        ),
        (
            METERED | {"quantity": "952.50", "rate": "3.11"},
            f"{HEAD}: 952.5 hours as before at a rate of 3.11 instead of 2.00.",
        ),
        (
            METERED | {"unit": "GB"},
            f"{HEAD}: from 952.5 to 1,480 GB at an unchanged rate of 2.00.",
        ),
    ],
)
def test_a_comparison_says_what_moved_it(row, expected):
    assert sentences.comparison(row) == expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("1055.00", "rose by 1,055.00"),
        ("-0.50", "fell by 0.50"),
        ("0.00", "did not change"),
    ],
)
def test_a_movement_has_a_direction(change, words):
    assert sentences.movement(change) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [("1480.00", "1,480"), ("952.50", "952.5"), ("0.25", "0.25"), ("100.00", "100")],
)
def test_a_quantity_has_no_idle_zeros(amount, words):
    assert sentences.quantity(amount) == words


def test_names_become_prose():
    assert sentences.either(["a"]) == "a"
    assert sentences.either(["a", "b"]) == "a or b"
    assert sentences.either(["a", "b", "c"], "and") == "a, b and c"


def test_an_empty_listing_says_so():
    assert "no invoices yet" in sentences.listing({"invoices": [], "count": 0})


def test_a_short_listing_is_complete():
    rows = [{"number": 1, "period": "2026-01", "total": "5.00"}]
    said = sentences.listing({"invoices": rows, "count": 1, "total": "5.00"})
    assert (
        said == "You have 1 invoice, 5.00 in all; all of them: 1 (January 2026) 5.00."
    )
