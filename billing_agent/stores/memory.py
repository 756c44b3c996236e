"""What the agent remembers across sessions, found again by words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import (
    BaseMemoryService,
    SearchMemoryResponse,
)
from google.adk.sessions import Session

from billing_agent.stores.pool import Pool

Key = Callable[[str], str]


def by_user(subject: str = "") -> Key:
    """Keep memory per ADK user, within the caller's scope when one is named."""
    raise NotImplementedError


def by_tenant(tenant: str) -> Key:
    """Keep memory per tenant, whichever user asks.

    Raises:
        ValueError: no tenant is named.
    """
    raise NotImplementedError


class MemoryService(BaseMemoryService):
    """Keeps texts of events and finds them as ADK's in-memory service does.

    Args:
        pool: connections to use.
        key: turns an ADK user id into the key memory is kept under.
    """

    def __init__(self, pool: Pool, key: Key | None = None) -> None:
        self._pool = pool
        self._key = key

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember every event of the session that has content."""
        raise NotImplementedError

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember these events; an event is remembered once."""
        raise NotImplementedError

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return at most ten memories that share words with the query."""
        raise NotImplementedError
