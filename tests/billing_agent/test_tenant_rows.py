"""Billing rows are read through a manager that needs a tenant."""

from __future__ import annotations

import pytest

from billing_agent.models import Invoice
from billing_agent.seed import seed
from tests.child import ROOT

pytestmark = pytest.mark.django_db


def test_rows_are_those_of_the_tenant_named():
    seed()
    for tenant in ("acme", "globex"):
        found = Invoice.by_tenant.for_tenant(tenant)
        assert {invoice.tenant_id for invoice in found} == {tenant}
    assert not Invoice.by_tenant.for_tenant("nobody").exists()


@pytest.mark.parametrize("tenant", ["", None])
def test_no_tenant_is_no_way_to_every_row(tenant):
    with pytest.raises(ValueError, match="tenant"):
        Invoice.by_tenant.for_tenant(tenant)


@pytest.mark.parametrize("method", ["all", "count", "first", "exists", "values"])
def test_manager_gives_no_rows_without_a_tenant(method):
    with pytest.raises(TypeError, match="for_tenant"):
        getattr(Invoice.by_tenant, method)()


def test_manager_filters_nothing_without_a_tenant():
    with pytest.raises(TypeError, match="for_tenant"):
        Invoice.by_tenant.filter(number=8812)


def test_agent_knows_no_other_manager():
    for path in (ROOT / "billing_agent" / "agent").glob("*.py"):
        assert ".objects" not in path.read_text(), path.name
