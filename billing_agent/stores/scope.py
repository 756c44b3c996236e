"""The caller's scope over any session service: no caller reaches another's sessions."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)

SEPARATOR = "\x1f"


class ScopedSessionService(BaseSessionService):
    """Shows one subject's sessions and ``user:`` state under plain ADK user ids.

    Inward a user id is subject + separator + user id. ``app:`` state stays shared.

    Args:
        inner: where the sessions are.
        subject: the authenticated caller.

    Raises:
        ValueError: the subject is empty or contains the separator.
    """

    def __init__(self, inner: BaseSessionService, subject: str) -> None:
        if not subject or SEPARATOR in subject:
            raise ValueError("a scope needs a subject without U+001F")
        self._inner = inner
        self._prefix = subject + SEPARATOR

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """As the inner service."""
        raise NotImplementedError

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """As the inner service."""
        raise NotImplementedError

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """As the inner service; without a user id: all of this subject's."""
        raise NotImplementedError

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """As the inner service."""
        raise NotImplementedError

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """As the inner service."""
        raise NotImplementedError

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the inner service; ``session`` keeps its outward user id."""
        raise NotImplementedError

    async def held(self, app_name: str, user_id: str) -> list[tuple[str, int]]:
        """Return (session id, number of events) of a user, as the store holds them."""
        raise NotImplementedError
