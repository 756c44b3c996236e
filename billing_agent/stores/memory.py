"""What the agent remembers across sessions, found again by words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.base_memory_service import (
    BaseMemoryService,
    SearchMemoryResponse,
)
from google.adk.sessions import Session
from google.genai import types

from billing_agent.models.sessions import SEPARATOR
from billing_agent.stores.pool import Pool, rows

Key = Callable[[str], str]

# Entries compared for one search; the newest when more have one of the words.
CANDIDATES = 1000

_ADD: Final = """
INSERT INTO billing_agent_memoryentry
    (app_name, key, session_id, event_id, author, timestamp, text, folded, content)
SELECT %(app)s, %(key)s, %(session)s, event.*
FROM unnest(
    %(ids)s::text[], %(authors)s::text[], %(times)s::float8[], %(texts)s::text[],
    %(folded)s::text[], %(contents)s::text[]
) AS event
ON CONFLICT DO NOTHING
"""

_SEARCH: Final = """
SELECT event_id, author, timestamp, content FROM billing_agent_memoryentry
WHERE app_name = %s AND key = %s
AND EXISTS (SELECT FROM unnest(%s::text[]) word WHERE strpos(folded, word) > 0)
ORDER BY id DESC
LIMIT %s
"""


def by_user(subject: str = "") -> Key:
    """Keep memory per ADK user, within the caller's scope when one is named.

    ADK users of two callers may have one id: name the subject unless there is one.
    """
    return lambda user_id: f"user{SEPARATOR}{subject}{SEPARATOR}{user_id}"


def by_tenant(tenant: str) -> Key:
    """Keep memory per tenant, whichever user asks.

    Args:
        tenant: the slug a verified token named; never a caller's own word.

    Raises:
        ValueError: no tenant is named.
    """
    if not tenant:
        raise ValueError("a tenant must be named")
    return lambda user_id: f"tenant{SEPARATOR}{tenant}"


class MemoryService(BaseMemoryService):
    """Keeps texts of events and finds them as ADK's in-memory service does.

    Args:
        pool: connections to use.
        key: turns an ADK user id into the key memory is kept under.
    """

    def __init__(self, pool: Pool, key: Key | None = None) -> None:
        self._pool = pool
        self._key = key or by_user()

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember every event of the session that has text."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember those of the events that have text; each is remembered once."""
        del custom_metadata
        kept = [(event, text) for event in events if (text := _text(event.content))]
        if not kept:
            return
        parameters: dict[str, Any] = {
            "app": app_name,
            "key": self._key(user_id),
            "session": session_id or "",
            "ids": [event.id for event, _ in kept],
            "authors": [event.author for event, _ in kept],
            "times": [event.timestamp for event, _ in kept],
            "texts": [text for _, text in kept],
            "folded": [_folded(text) for _, text in kept],
            "contents": [_json(event.content) for event, _ in kept],
        }
        await rows(self._pool, _ADD, parameters)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return at most ten memories, those that share the most words first."""
        words = sorted(set(re.findall(r"\w+", _folded(query))))
        parameters = (app_name, self._key(user_id), words, CANDIDATES)
        found = await rows(self._pool, _SEARCH, parameters)
        events = [
            Event(id=name, author=author, timestamp=at, content=_content(body))
            for name, author, at, body in reversed(found)
        ]
        # The rows may share no more than letters with the query; ADK ranks by words.
        ranking = InMemoryMemoryService()
        await ranking.add_events_to_memory(
            app_name=app_name, user_id=user_id, events=events
        )
        return await ranking.search_memory(
            app_name=app_name, user_id=user_id, query=query
        )


def _text(content: types.Content | None) -> str:
    parts = content.parts if content and content.parts else []
    return " ".join(part.text for part in parts if part.text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def _json(content: types.Content | None) -> str:
    return content.model_dump_json(exclude_none=True) if content else ""


def _content(body: str) -> types.Content:
    return types.Content.model_validate_json(body)
