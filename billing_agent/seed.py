"""The demo's invoices: two tenants, two years, the same figures every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.models import QuerySet

from billing_agent.models import Invoice, LineItem, Tenant

NEWEST_NUMBER = 8812
NEWEST_PERIOD = date(2026, 6, 1)
MONTHS = 24
LINES = ("compute", "storage", "egress", "support")


@dataclass(frozen=True, slots=True)
class Book:
    """One tenant's billing; amounts are the newest month's trend, not its figures.

    ``step`` is the distance between two invoice numbers, ``hours`` are compute
    hours, the rest are money.
    """

    slug: str
    name: str
    step: int
    rate: Decimal
    hours: Decimal
    storage: Decimal
    egress: Decimal
    support: Decimal


BOOKS = (
    Book(
        slug="acme",
        name="Acme",
        step=45,
        rate=Decimal("2.00"),
        hours=Decimal(950),
        storage=Decimal(585),
        egress=Decimal(505),
        support=Decimal(200),
    ),
    Book(
        slug="globex",
        name="Globex",
        step=37,
        rate=Decimal("1.80"),
        hours=Decimal(620),
        storage=Decimal(240),
        egress=Decimal(1310),
        support=Decimal(350),
    ),
)

# Months told in the story, by tenant and age: hours, storage, egress.
FIXTURE = {
    ("acme", 0): (Decimal("1480.00"), Decimal("610.20"), Decimal("540.00")),
    ("acme", 1): (Decimal("952.50"), Decimal("577.40"), Decimal("500.00")),
    ("globex", 0): (Decimal("655.00"), Decimal("251.35"), Decimal("1342.80")),
}


def seed() -> int:
    """Create the invoices that are missing, leave what is there; return line count."""
    missing = MONTHS * len(LINES) * len(BOOKS) - sum(
        _seeded_lines(book).count() for book in BOOKS
    )
    if missing:
        with transaction.atomic():
            for book in BOOKS:
                _write(book)
    return missing


def _numbers(book: Book) -> list[int]:
    return [NEWEST_NUMBER - book.step * age for age in range(MONTHS)]


def _period(age: int) -> date:
    months = NEWEST_PERIOD.year * 12 + NEWEST_PERIOD.month - 1 - age
    return date(months // 12, months % 12 + 1, 1)


def _seeded_lines(book: Book) -> QuerySet[LineItem]:
    return LineItem.objects.filter(
        invoice__tenant_id=book.slug,
        invoice__number__in=_numbers(book),
        name__in=LINES,
    )


def _write(book: Book) -> None:
    Tenant.objects.bulk_create(
        [Tenant(slug=book.slug, name=book.name)], ignore_conflicts=True
    )
    numbers = _numbers(book)
    Invoice.objects.bulk_create(
        [
            Invoice(tenant_id=book.slug, number=number, period=_period(age))
            for age, number in enumerate(numbers)
        ],
        ignore_conflicts=True,
    )
    invoices = Invoice.by_tenant.for_tenant(book.slug).filter(number__in=numbers)
    by_number = {invoice.number: invoice for invoice in invoices}
    LineItem.objects.bulk_create(
        [
            line
            for age, number in enumerate(numbers)
            for line in _lines(book, by_number[number], age)
        ],
        ignore_conflicts=True,
    )


def _lines(book: Book, invoice: Invoice, age: int) -> Iterator[LineItem]:
    hours, storage, egress = _figures(book, age)
    yield LineItem(
        invoice=invoice,
        position=0,
        name="compute",
        quantity=hours,
        unit="h",
        rate=book.rate,
        amount=hours * book.rate,
    )
    amounts = (storage, egress, book.support)
    for position, (name, amount) in enumerate(
        zip(LINES[1:], amounts, strict=True), start=1
    ):
        yield LineItem(invoice=invoice, position=position, name=name, amount=amount)


def _figures(book: Book, age: int) -> tuple[Decimal, Decimal, Decimal]:
    """Return hours, storage and egress: slow growth with a fixed ripple on it."""
    if fixed := FIXTURE.get((book.slug, age)):
        return fixed
    return (
        book.hours * (100 - age) / 100 + (age * 37 % 23 - 11) * Decimal("0.50"),
        book.storage * (100 - age) / 100 + (age * 29 % 17 - 8) * Decimal("0.35"),
        book.egress * (100 - age) / 100 + (age * 53 % 19 - 9) * Decimal("1.10"),
    )
