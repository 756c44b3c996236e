"""ADK sessions in PostgreSQL: one round trip for each thing asked."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)

from billing_agent.stores.pool import Pool


class SessionService(BaseSessionService):
    """Keeps sessions, events and state on the tables of the Django models.

    Behaves as ADK's ``InMemorySessionService`` does, and refuses a stale writer: an
    event is appended only to the revision its Session object was read at.

    Args:
        pool: connections to use.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; of several concurrent creations exactly one wins.

        Raises:
            google.adk.errors.already_exists_error.AlreadyExistsError: it exists.
        """
        raise NotImplementedError

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return the session as stored, None when there is none."""
        raise NotImplementedError

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None, user_prefix: str = ""
    ) -> ListSessionsResponse:
        """List sessions without their events, the least recently used first.

        Args:
            app_name: the app.
            user_id: one user; None for all.
            user_prefix: with ``user_id`` None: only users whose id begins with it.
        """
        raise NotImplementedError

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Delete the session and its events, if it exists."""
        raise NotImplementedError

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the user's state, keys without the ``user:`` prefix."""
        raise NotImplementedError

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event together with its state changes, in one transaction.

        Raises:
            google.adk.errors.StaleSessionError: the stored session has moved on.
            google.adk.errors.session_not_found_error.SessionNotFoundError: deleted.
        """
        raise NotImplementedError

    async def held(self, app_name: str, user_id: str) -> list[tuple[str, int]]:
        """Return (session id, number of events) of a user, as the tables hold them."""
        raise NotImplementedError
