"""What the tools answer: invoices of one tenant as JSON, money as text."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum

from billing_agent.errors import (
    InvoiceUnknown,
    LineUnknown,
    NotAnInvoiceNumber,
    NothingBefore,
)
from billing_agent.models import Invoice, LineItem

Answer = dict[str, Any]


def describe(tenant: str, number: object) -> Answer:
    """Return an invoice's lines, each with its change from the month before.

    Raises:
        InvoiceUnknown: the tenant has no invoice of this number.
        NotAnInvoiceNumber: ``number`` is no whole number.
    """
    invoice, before = _with_previous(tenant, whole_number(number))
    earlier = _by_name(before) if before else {}
    answer = _head(invoice)
    if before:
        answer |= {
            "previous": before.number,
            "previous_total": money(_total(before)),
            "change": money(_total(invoice) - _total(before)),
        }
    answer["lines"] = [
        _line(line, earlier.get(line.name)) for line in invoice.lines.all()
    ]
    return answer


def listing(tenant: str, newest: object) -> Answer:
    """Return how many invoices there are, their sum, and the newest of them.

    Args:
        tenant: whose.
        newest: how many to list, 1 to 100.
    """
    mine = Invoice.by_tenant.for_tenant(tenant)
    sums = mine.aggregate(count=Count("id", distinct=True), total=Sum("lines__amount"))
    limit = min(max(whole_number(newest), 1), 100)
    rows = mine.annotate(total=Sum("lines__amount")).order_by("-period")[:limit]
    return {
        "count": sums["count"],
        "total": money(sums["total"] or Decimal(0)),
        "invoices": [
            {
                "number": row.number,
                "period": f"{row.period:%Y-%m}",
                "total": money(row.total or Decimal(0)),
            }
            for row in rows
        ],
    }


def compare(tenant: str, number: object, line: str, against: object = None) -> Answer:
    """Return one line of an invoice beside the same line of an earlier one.

    Args:
        tenant: whose.
        number: the invoice.
        line: the line's name, in any letter case.
        against: number of the other invoice; the month before when left out.

    Raises:
        InvoiceUnknown: the tenant has no invoice of one of the numbers.
        LineUnknown: one of the invoices has no such line.
        NothingBefore: the invoice is the tenant's first.
        NotAnInvoiceNumber: a number is no whole number.
    """
    invoice, other = _with_previous(tenant, whole_number(number))
    if against is not None:
        other, _ = _with_previous(tenant, whole_number(against))
    if other is None:
        raise NothingBefore(invoice.number)
    now, then = _named(invoice, line), _named(other, line)
    return {
        "number": invoice.number,
        "period": f"{invoice.period:%Y-%m}",
        "previous": other.number,
        "previous_period": f"{other.period:%Y-%m}",
        **_line(now, then),
        **_metered_before(now, then),
    }


def audit(tenant: str, number: object = None) -> Answer:
    """Return what a check of one invoice finds, and which invoice comes before it.

    Args:
        tenant: whose.
        number: the invoice; the newest when left out.

    Raises:
        InvoiceUnknown: the tenant has no invoice of this number, or none at all.
        NotAnInvoiceNumber: ``number`` is no whole number.
    """
    if number is None:
        newest = Invoice.by_tenant.for_tenant(tenant).order_by("-period").first()
        number = newest.number if newest else 0
    invoice, before = _with_previous(tenant, whole_number(number))
    answer = _head(invoice) | {"findings": list(_miscalculated(invoice))}
    if before:
        answer["previous"] = before.number
        changes = _changes(invoice, before)
        line = max(changes, key=lambda name: changes[name])
        answer["largest_rise"] = {"line": line, "change": money(changes[line])}
    return answer


def money(amount: Decimal) -> str:
    """Return an amount as it goes on the wire: text with two decimals."""
    return f"{amount:.2f}"


def whole_number(value: object) -> int:
    """Return an invoice number; ``8812.0`` and ``"8812"`` are 8812.

    Raises:
        NotAnInvoiceNumber: it is no whole number.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdecimal() and len(value) <= 18:
        return int(value)
    raise NotAnInvoiceNumber(value)


def _with_previous(tenant: str, number: int) -> tuple[Invoice, Invoice | None]:
    mine = Invoice.by_tenant.for_tenant(tenant)
    upto = mine.filter(period__lte=mine.filter(number=number).values("period"))
    found = list(upto.order_by("-period").prefetch_related("lines")[:2])
    if not found:
        raise InvoiceUnknown(number)
    return found[0], found[1] if len(found) > 1 else None


def _head(invoice: Invoice) -> Answer:
    return {
        "number": invoice.number,
        "period": f"{invoice.period:%Y-%m}",
        "total": money(_total(invoice)),
    }


def _total(invoice: Invoice) -> Decimal:
    return sum((line.amount for line in invoice.lines.all()), Decimal(0))


def _by_name(invoice: Invoice) -> dict[str, LineItem]:
    return {line.name: line for line in invoice.lines.all()}


def _named(invoice: Invoice, name: str) -> LineItem:
    for line in invoice.lines.all():
        if line.name.casefold() == name.strip().casefold():
            return line
    raise LineUnknown(invoice.number, name)


def _line(line: LineItem, before: LineItem | None) -> Answer:
    answer: Answer = {"line": line.name, "amount": money(line.amount)}
    if before is not None:
        answer["previous_amount"] = money(before.amount)
        answer["change"] = money(line.amount - before.amount)
    if line.quantity is not None and line.rate is not None:
        answer["quantity"] = money(line.quantity)
        answer["unit"] = line.unit
        answer["rate"] = money(line.rate)
    return answer


def _metered_before(line: LineItem, before: LineItem) -> Answer:
    if None in (line.quantity, line.rate) or before.quantity is None:
        return {}
    if before.rate is None or before.unit != line.unit:
        return {}
    return {
        "previous_quantity": money(before.quantity),
        "previous_rate": money(before.rate),
    }


def _changes(invoice: Invoice, before: Invoice) -> dict[str, Decimal]:
    earlier = _by_name(before)
    return {
        name: line.amount - (earlier[name].amount if name in earlier else Decimal(0))
        for name, line in _by_name(invoice).items()
    }


def _miscalculated(invoice: Invoice) -> Iterable[str]:
    for line in invoice.lines.all():
        if line.quantity is None or line.rate is None:
            continue
        expected = (line.quantity * line.rate).quantize(Decimal("0.01"))
        if line.amount != expected:
            yield f"{line.name} is {money(line.amount)}, not {money(expected)}"
