"""The continuity fix: a hook that stores the session under the name looked up."""

from __future__ import annotations

from collections.abc import Callable

from a2a.server.agent_execution import RequestContext

from billing_agent.executor.config import BeforeExecute
from billing_agent.executor.conversation import Conversation


def continuity(conversation: Callable[[RequestContext], Conversation]) -> BeforeExecute:
    """Return a hook that gets or creates the session under the context id.

    It runs before the executor's own lookup and depends on three of its internals:
    the user prefix, the lookup key and the order. A test pins each of them.

    Args:
        conversation: gives the conversation a request belongs to.
    """

    async def ensure_session(ctx: RequestContext) -> bool:
        await conversation(ctx).ensure()
        return False

    return ensure_session
