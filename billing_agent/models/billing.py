"""Invoices: what the agent is asked about. Every row belongs to one tenant."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models


class Tenant(models.Model):
    """A customer organisation; its slug is what a verified token names."""

    slug = models.SlugField(primary_key=True, max_length=63)
    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class TenantManager(models.Manager[Any]):
    """A manager whose rows cannot be reached without naming a tenant."""

    def get_queryset(self) -> NoReturn:
        """Refuse what Django's managers offer beside ``for_tenant``.

        Raises:
            TypeError: always.
        """
        raise TypeError("rows of which tenant? use for_tenant")

    def for_tenant(self, tenant: str) -> models.QuerySet[Any]:
        """Return the rows of one tenant.

        Args:
            tenant: the slug a verified token named; never a caller's own word.

        Raises:
            ValueError: the slug is empty.
        """
        if not tenant:
            raise ValueError("a tenant must be named")
        return super().get_queryset().filter(tenant_id=tenant)


class Invoice(models.Model):
    """One monthly invoice. Numbers are unique per tenant only."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="invoices")
    number = models.PositiveIntegerField()
    period = models.DateField(help_text="first day of the month billed")

    objects = models.Manager()
    by_tenant = TenantManager()

    class Meta:
        ordering = ["tenant", "period"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="number_per_tenant"
            ),
            models.UniqueConstraint(
                fields=["tenant", "period"], name="period_per_tenant"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} ({self.tenant_id})"


class LineItem(models.Model):
    """One line of an invoice; hours and rate only where the line is metered."""

    invoice = models.ForeignKey(Invoice, models.CASCADE, related_name="lines")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=60)
    quantity = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    unit = models.CharField(max_length=20, blank=True)
    rate = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2)

    class Meta:
        ordering = ["invoice", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["invoice", "name"], name="line_per_invoice"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.amount}"
