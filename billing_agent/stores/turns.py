"""Turns: one at a time per caller and conversation, over all replicas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from billing_agent.stores.bus import Bus


class Turns:
    """Serialises the turns of each conversation with advisory locks.

    Args:
        conninfo: PostgreSQL URL or connection string, for one dedicated connection.
        bus: tells that a turn ended on another replica.
    """

    def __init__(self, conninfo: str, bus: Bus) -> None:
        self._conninfo = conninfo
        self._bus = bus

    async def start(self) -> None:
        """Connect.

        Raises:
            psycopg.OperationalError: the first connection failed.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Close the connection; the server frees the turns still held."""
        raise NotImplementedError

    @asynccontextmanager
    async def turn(
        self, subject: str, context_id: str, wait: float
    ) -> AsyncIterator[None]:
        """Hold the conversation's turn; waiting turns come in their order.

        Args:
            subject: the authenticated caller.
            context_id: the conversation.
            wait: seconds to wait at most.

        Raises:
            billing_agent.errors.ConversationBusy: it was not free within ``wait``.
        """
        raise NotImplementedError
        yield
