"""Sentences made of tool results; every figure in them is the tool's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]

_UNITS = {"h": "hours"}


def money(amount: str) -> str:
    """Return an amount with thousands separated: ``1,055.00``."""
    return f"{Decimal(amount):,.2f}"


def quantity(amount: str) -> str:
    """Return a quantity without idle zeros: ``952.5``, ``1,480``."""
    return money(amount).rstrip("0").rstrip(".")


def month(period: str) -> str:
    """Return ``2026-06`` as ``June 2026``."""
    return f"{date.fromisoformat(period + '-01'):%B %Y}"


def either(names: Iterable[str], word: str = "or") -> str:
    """Return names as a list in prose: ``compute, storage or support``."""
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


def movement(change: str) -> str:
    """Return ``rose by 1,055.00``, ``fell by …`` or ``did not change``."""
    moved = Decimal(change)
    if not moved:
        return "did not change"
    return f"{'rose' if moved > 0 else 'fell'} by {money(str(abs(moved)))}"


def comparison(row: Row) -> str:
    """Return what ``compare_line_item`` found, with the cause where it shows."""
    head = (
        f"{row['line'].capitalize()} {movement(row['change'])}"
        f" between invoice {row['previous']} and invoice {row['number']}"
    )
    if "previous_quantity" not in row:
        then, now = money(row["previous_amount"]), money(row["amount"])
        return f"{head}: {then} then, {now} now."
    return f"{head}: {_hours(row)} {_rate(row)}."


def _hours(row: Row) -> str:
    unit = _UNITS.get(row["unit"], row["unit"])
    then, now = quantity(row["previous_quantity"]), quantity(row["quantity"])
    return f"{now} {unit} as before" if then == now else f"from {then} to {now} {unit}"


def _rate(row: Row) -> str:
    then, now = money(row["previous_rate"]), money(row["rate"])
    if then == now:
        return f"at an unchanged rate of {now}"
    return f"at a rate of {now} instead of {then}"


def summary(invoice: Row) -> str:
    """Return an invoice's total, its change, and its lines."""
    lines = ", ".join(
        f"{row['line']} {money(row['amount'])}" for row in invoice["lines"]
    )
    total = f"Invoice {invoice['number']} ({month(invoice['period'])}) totals"
    text = f"{total} {money(invoice['total'])}: {lines}."
    if "change" in invoice:
        moved = movement(invoice["change"])
        text += f" The total {moved} from invoice {invoice['previous']}."
    return text


def changes(invoice: Row) -> str:
    """Return how every line of an invoice moved from the month before."""
    moves = (
        f"{row['line']} {movement(row['change'])}"
        for row in invoice["lines"]
        if "change" in row
    )
    head = f"From invoice {invoice['previous']} to invoice {invoice['number']}"
    return f"{head} the total {movement(invoice['change'])}: {', '.join(moves)}."


def listing(answer: Row) -> str:
    """Return the invoices ``list_invoices`` found."""
    rows = answer["invoices"]
    if not rows:
        return "You have no invoices yet."
    listed = "; ".join(
        f"{row['number']} ({month(row['period'])}) {money(row['total'])}"
        for row in rows
    )
    count, total = answer["count"], money(answer["total"])
    shown = "all of them" if len(rows) == count else f"the newest {len(rows)}"
    held = "1 invoice" if count == 1 else f"{count} invoices"
    return f"You have {held}, {total} in all; {shown}: {listed}."


def audit(rows: Sequence[Row]) -> str:
    """Return what an audit over several invoices found."""
    wrong = [f"{row['number']}: {found}" for row in rows for found in row["findings"]]
    verdict = "; ".join(wrong) if wrong else "every metered line adds up"
    text = f"Audited {_invoices(rows)}: {verdict}."
    risen = [row for row in rows if "largest_rise" in row]
    if risen:
        top = max(risen, key=lambda row: Decimal(row["largest_rise"]["change"]))
        rise = top["largest_rise"]
        moved = movement(rise["change"])
        text += f" Largest rise: {rise['line']} {moved} on invoice {top['number']}."
    return text


def _invoices(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return f"invoice {rows[0]['number']}"
    return f"{len(rows)} invoices, {rows[-1]['number']} to {rows[0]['number']}"
