"""The agent's tools: each reads the verified tenant and that tenant's rows only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# ADK resolves the annotations of a tool when it runs.
from google.adk.tools.tool_context import ToolContext

from billing_agent.agent import invoices
from billing_agent.agent.database import in_database
from billing_agent.agent.state_keys import PREFERENCES
from billing_agent.agent.tenant import verified_tenant
from billing_agent.errors import BillingError

KEPT_PREFERENCES = 20
"""How many preferences one conversation keeps; the oldest go first."""


async def get_invoice(number: int, tool_context: ToolContext) -> dict[str, Any]:
    """Get one invoice with its lines and each line's change from the month before.

    Args:
        number: the invoice number.
    """
    return await _answer(tool_context, invoices.describe, number)


async def list_invoices(tool_context: ToolContext, newest: int = 12) -> dict[str, Any]:
    """List the newest invoices with their totals, and how many there are in all.

    Args:
        newest: how many to list, at most 100.
    """
    return await _answer(tool_context, invoices.listing, newest)


async def compare_line_item(
    number: int, line: str, tool_context: ToolContext, against: int | None = None
) -> dict[str, Any]:
    """Compare one line of an invoice with the same line of an earlier invoice.

    Args:
        number: the invoice number.
        line: the name of the line, such as compute.
        against: number of the invoice to compare with; the month before by default.
    """
    return await _answer(tool_context, invoices.compare, number, line, against)


async def audit_invoice(
    tool_context: ToolContext, number: int | None = None
) -> dict[str, Any]:
    """Check one invoice; to audit several, go on with the number in `previous`.

    Args:
        number: the invoice number; the newest invoice by default.
    """
    return await _answer(tool_context, invoices.audit, number)


async def ask_user(question: str) -> None:
    """Ask the user one question and wait for the answer.

    Args:
        question: the question, as the user will read it.
    """
    # No result: ADK then neither answers the call nor calls the model again.


async def remember_preference(
    preference: str, tool_context: ToolContext
) -> dict[str, Any]:
    """Remember how the user wants to be answered, for this conversation.

    Args:
        preference: the user's own words.
    """
    known = [kept for kept in _preferences(tool_context) if kept != preference]
    tool_context.state[PREFERENCES] = [*known, preference][-KEPT_PREFERENCES:]
    return {"preferences": _preferences(tool_context)}


async def recall_preferences(tool_context: ToolContext) -> dict[str, Any]:
    """Get what the user asked to remember in this conversation."""
    return {"preferences": _preferences(tool_context)}


async def recall(topic: str, tool_context: ToolContext) -> dict[str, Any]:
    """Search earlier conversations.

    Args:
        topic: words to search for.
    """
    try:
        found = await tool_context.search_memory(topic)
    except ValueError:  # ADK's word for a runner without a memory service
        return {"error": "nothing is kept across conversations here"}
    return {
        "memories": [
            part.text
            for memory in found.memories
            for part in memory.content.parts or []
            if part.text
        ]
    }


def _preferences(context: ToolContext) -> list[str]:
    return list(context.state.get(PREFERENCES) or [])


async def _answer(
    context: ToolContext, query: Callable[..., dict[str, Any]], *args: object
) -> dict[str, Any]:
    """Answer from the tenant's rows; a miss is a result, a missing tenant is not."""
    tenant = verified_tenant(context)
    try:
        return await in_database(query, tenant, *args)
    except BillingError as miss:
        return {"error": str(miss)}
