"""Django models of the billing agent, one module per subject."""

from __future__ import annotations

from billing_agent.models.audit import AuditEntry
from billing_agent.models.billing import Invoice, LineItem, Tenant
from billing_agent.models.memory import MemoryEntry
from billing_agent.models.sessions import (
    AdkAppState,
    AdkEvent,
    AdkSession,
    AdkUserState,
)
from billing_agent.models.tasks import A2ASend, A2ATask, A2ATaskEvent

__all__ = [
    "A2ASend",
    "A2ATask",
    "A2ATaskEvent",
    "AdkAppState",
    "AdkEvent",
    "AdkSession",
    "AdkUserState",
    "AuditEntry",
    "Invoice",
    "LineItem",
    "MemoryEntry",
    "Tenant",
]
