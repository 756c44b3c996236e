"""ADK sessions in PostgreSQL: one round trip for each thing asked."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions import BaseSessionService, Session, _session_util
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.state import State
from psycopg.types.json import Jsonb

from billing_agent.stores import session_sql as sql
from billing_agent.stores.history import History, Key, parse
from billing_agent.stores.pool import Pool, rows

# Sorts after every user id: the last code point belongs to nobody.
LAST = "\U0010ffff"


class SessionService(BaseSessionService):
    """Keeps sessions, events and state on the tables of the Django models.

    Behaves as ADK's ``InMemorySessionService`` does, and refuses a stale writer: an
    event is appended only to the revision its Session object was read at.

    Args:
        pool: connections to use.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._history = History()
        self._appending: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

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
        session_id = (session_id or "").strip() or platform_uuid.new_uuid()
        now = platform_time.get_time()
        key = (app_name, user_id, session_id)
        parameters = _named(key) | _deltas(state or {}) | {"at": now}
        found = await rows(self._pool, sql.CREATE, parameters)
        if not found:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")
        row, *states = found[0]
        return _session(key, row, 0, now, _merged(*states), [])

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return the session as stored, None when there is none."""
        key = (app_name, user_id, session_id.strip())
        if config is not None:
            return await self._get_part(key, config)
        known = self._history.get(key)
        parameters = {"row": known.row, "revision": known.revision}
        found = await self._get(key, parameters)
        if found is None:
            return None
        row, revision, at, state, bodies = found
        tail = parse(bodies)
        events = known.thaw() + tail if row == known.row else tail
        if (row, revision) != (known.row, known.revision):
            self._history.keep(key, known.extended(row, revision, tail))
        return _session(key, row, revision, at, state, events)

    async def _get_part(self, key: Key, config: GetSessionConfig) -> Session | None:
        parameters = {
            "recent": config.num_recent_events,
            "after": config.after_timestamp,
        }
        found = await self._get(key, parameters)
        if found is None:
            return None
        row, revision, at, state, bodies = found
        return _session(key, row, revision, at, state, parse(bodies))

    async def _get(
        self, key: Key, parameters: dict[str, Any]
    ) -> tuple[int, int, float, dict[str, Any], str | None] | None:
        found = await rows(
            self._pool, sql.GET, sql.EVERYTHING | parameters | _named(key)
        )
        if not found:
            return None
        row, revision, at, bodies, *states = found[0]
        return row, revision, at, _merged(*states), bodies

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None, user_prefix: str = ""
    ) -> ListSessionsResponse:
        """List sessions without their events, the least recently used first.

        Args:
            app_name: the app.
            user_id: one user; None for all.
            user_prefix: with ``user_id`` None: only users whose id begins with it.
        """
        first, last = user_prefix, user_prefix + LAST
        if user_id is not None:
            first = last = user_id
        found = await rows(self._pool, sql.LIST, (app_name, first, last))
        sessions = [
            _session((app_name, user, name), row, revision, at, _merged(*states), [])
            for user, name, row, revision, at, *states in found
        ]
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Delete the session and its events, if it exists."""
        key = (app_name, user_id, session_id.strip())
        async with self._pool.connection() as connection, connection.transaction():
            # The row first: an event being appended is then either seen or refused.
            cursor = await connection.execute(sql.LOCK, _named(key))
            for (row,) in await cursor.fetchall():
                await connection.execute(sql.DELETE_EVENTS, (row,))
                await connection.execute(sql.DELETE, (row,))
        self._history.drop(key)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the user's state, keys without the ``user:`` prefix."""
        found = await rows(self._pool, sql.USER_STATE, (app_name, user_id))
        return found[0][0] if found else {}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event together with its state changes, in one transaction.

        Raises:
            google.adk.errors.StaleSessionError: the stored session has moved on.
            google.adk.errors.session_not_found_error.SessionNotFoundError: deleted.
        """
        if event.partial:
            return event
        key = (session.app_name, session.user_id, session.id)
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        # Branches of one run share one Session object and its revision.
        async with self._appending.setdefault(key, asyncio.Lock()):
            await self._append(key, session, event)
        return event

    async def _append(self, key: Key, session: Session, event: Event) -> None:
        row, revision = _revision(session)
        parameters = _named(key) | _deltas(event.actions.state_delta)
        parameters |= {"row": row, "revision": revision, "event": event.id}
        parameters |= {"at": event.timestamp, "body": _body(event)}
        exists, known, appended = await self._try_append(parameters)
        if exists and not known and appended is None:
            # What kept the event out may have happened under way: look again.
            exists, known, _ = await self._try_append(parameters)
        if not exists:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        if known:
            return
        if appended is None:
            raise StaleSessionError(
                f"Session {session.id} has moved on since revision {revision} was read."
            )
        session._storage_update_marker = f"{appended}:{revision + 1}"
        session.last_update_time = event.timestamp
        self._commit_event_to_session(session, event)

    async def _try_append(
        self, parameters: dict[str, Any]
    ) -> tuple[bool, bool, int | None]:
        """Return: the session exists, it has this event already, row appended to."""
        found = await rows(self._pool, sql.APPEND, parameters)
        exists, known, appended = found[0]
        return exists, known, appended

    async def held(self, app_name: str, user_id: str) -> list[tuple[str, int]]:
        """Return (session id, number of events) of a user, as the tables hold them."""
        found = await rows(self._pool, sql.HELD, (app_name, user_id))
        return [(session_id, events) for session_id, events in found]


def _named(key: Key) -> dict[str, Any]:
    return dict(zip(("app", "user", "session"), key, strict=True))


def _deltas(state: dict[str, Any]) -> dict[str, Any]:
    """Split a change of state by scope, as parameters; ``temp:`` is left out."""
    deltas = _session_util.extract_json_safe_state_delta(state)
    return {f"{scope}_delta": Jsonb(delta) for scope, delta in deltas.items()}


def _merged(
    session: dict[str, Any], user: dict[str, Any] | None, app: dict[str, Any] | None
) -> dict[str, Any]:
    merged = dict(session)
    merged.update({State.APP_PREFIX + key: value for key, value in (app or {}).items()})
    merged.update(
        {State.USER_PREFIX + key: value for key, value in (user or {}).items()}
    )
    return merged


def _body(event: Event) -> str:
    return event.model_dump_json(exclude_none=True)


def _session(
    key: Key,
    row: int,
    revision: int,
    at: float,
    state: dict[str, Any],
    events: list[Event],
) -> Session:
    app_name, user_id, session_id = key
    session = Session(
        app_name=app_name,
        user_id=user_id,
        id=session_id,
        state=state,
        events=events,
        last_update_time=at,
    )
    session._storage_update_marker = f"{row}:{revision}"
    return session


def _revision(session: Session) -> tuple[int | None, int]:
    """Return the row and the revision a Session object stands at.

    One that was not read from here (restored from its JSON, say) stands at as many
    events as it holds.
    """
    marker = session._storage_update_marker
    if marker is None:
        return None, len(session.events)
    row, revision = marker.split(":")
    return int(row), int(revision)
