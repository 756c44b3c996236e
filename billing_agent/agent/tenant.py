"""Whose invoices an invocation may read: what the filter stamped, nothing else."""

from __future__ import annotations

from google.adk.a2a.converters.request_converter import A2A_METADATA_KEY
from google.adk.agents.readonly_context import ReadonlyContext

from billing_agent.errors import TenantMissing

TENANT_KEY = "x-verified-tenant"


def tenant_or_blank(context: ReadonlyContext) -> str:
    """Return the tenant the request metadata carries, empty when it carries none."""
    config = context.run_config
    metadata = (config.custom_metadata or {}) if config else {}
    stamped = metadata.get(A2A_METADATA_KEY)
    tenant = stamped.get(TENANT_KEY) if isinstance(stamped, dict) else None
    return tenant if isinstance(tenant, str) else ""


def verified_tenant(context: ReadonlyContext) -> str:
    """Return the verified tenant of an invocation.

    Raises:
        TenantMissing: there is none. No default takes its place.
    """
    tenant = tenant_or_blank(context)
    if not tenant:
        raise TenantMissing
    return tenant
