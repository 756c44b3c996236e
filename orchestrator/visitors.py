"""Whose run it is: the browser session that started it, kept as a digest."""

from __future__ import annotations

import hashlib
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

    from orchestrator.models import Run


def digest(session_key: str) -> str:
    """Return what is stored of a session: its key itself would open it."""
    return hashlib.sha256(b"run owner " + session_key.encode()).hexdigest()[:32]


async def visitor(request: HttpRequest) -> str:
    """Return the digest of the reader's session, started if there is none."""
    session = request.session
    if session.session_key is None or not await session.aexists(session.session_key):
        await session.acreate()
    assert session.session_key  # noqa: S101 created above
    return digest(session.session_key)


def owns(session_key: str | None, run: Run) -> bool:
    """Tell whether the run was started in this browser session."""
    return bool(session_key and run.started_by == digest(session_key))


def session_key(scope: dict[str, Any]) -> str | None:
    """Return the session key among the cookies of an ASGI scope."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            morsel = SimpleCookie(value.decode("latin-1")).get(
                settings.SESSION_COOKIE_NAME
            )
            return morsel.value if morsel else None
    return None
