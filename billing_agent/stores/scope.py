"""The caller's scope over any session service: no caller reaches another's sessions."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from google.adk.events.event import Event
from google.adk.sessions import (
    BaseSessionService,
    InMemorySessionService,
    Session,
)
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)

from billing_agent.models.sessions import SEPARATOR
from billing_agent.stores.sessions import SessionService


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
        self._handed: Session | None = None
        self._appending: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """As the inner service."""
        session = await self._inner.create_session(
            app_name=app_name,
            user_id=self._prefix + user_id,
            state=state,
            session_id=session_id,
        )
        return self._outward(session)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """As the inner service, or the session that was handed over."""
        handed, self._handed = self._handed, None
        if handed and config is None and _is(handed, app_name, user_id, session_id):
            return handed
        session = await self._inner.get_session(
            app_name=app_name,
            user_id=self._prefix + user_id,
            session_id=session_id,
            config=config,
        )
        return session and self._outward(session)

    def hand_over(self, session: Session) -> None:
        """Give the next reader of a session this one, instead of reading it again.

        For a turn that has just read or created the session and is its only writer: a
        session that moved on all the same is refused at the first append.
        """
        self._handed = session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """As the inner service; without a user id: all of this subject's."""
        if user_id is not None:
            found = await self._inner.list_sessions(
                app_name=app_name, user_id=self._prefix + user_id
            )
        elif isinstance(self._inner, SessionService):
            found = await self._inner.list_sessions(
                app_name=app_name, user_prefix=self._prefix
            )
        else:
            found = await self._inner.list_sessions(app_name=app_name)
        mine = [s for s in found.sessions if s.user_id.startswith(self._prefix)]
        return ListSessionsResponse(sessions=[self._outward(s) for s in mine])

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """As the inner service."""
        await self._inner.delete_session(
            app_name=app_name, user_id=self._prefix + user_id, session_id=session_id
        )

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """As the inner service."""
        return await self._inner.get_user_state(
            app_name=app_name, user_id=self._prefix + user_id
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the inner service; ``session`` keeps its outward user id.

        ADK makes an event of an exception; its text is the log's and is not stored.
        """
        if event.error_message:
            event = event.model_copy(update={"error_message": None})
        # Branches of one run share one Session object and its revision.
        async with self._appending.setdefault(session.id, asyncio.Lock()):
            # A view: it shares the lists of events and state with the caller's own.
            view = session.model_copy(
                update={"user_id": self._prefix + session.user_id}
            )
            event = await self._inner.append_event(view, event)
            session.last_update_time = view.last_update_time
            session._storage_update_marker = view._storage_update_marker
        return event

    async def held(self, app_name: str, user_id: str) -> list[tuple[str, int]]:
        """Return (session id, number of events) of a user, as the store holds them.

        Raises:
            NotImplementedError: the inner service cannot tell.
        """
        user_id = self._prefix + user_id
        if isinstance(self._inner, SessionService):
            return await self._inner.held(app_name, user_id)
        if isinstance(self._inner, InMemorySessionService):
            held = self._inner.sessions.get(app_name, {}).get(user_id, {})
            return [(name, len(session.events)) for name, session in held.items()]
        raise NotImplementedError(f"{type(self._inner).__name__} does not count events")

    async def flush(self) -> None:
        """As the inner service."""
        await self._inner.flush()

    def _outward(self, session: Session) -> Session:
        session.user_id = session.user_id.removeprefix(self._prefix)
        return session


def _is(session: Session, app_name: str, user_id: str, session_id: str) -> bool:
    named = (app_name, user_id, session_id)
    return named == (session.app_name, session.user_id, session.id)
