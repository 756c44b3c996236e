"""Whose run it is: the browser that started it, by a cookie kept as a digest."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http.cookie import parse_cookie

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from orchestrator.models import Run

COOKIE = "visitor"
MONTH = 30 * 24 * 3600


def digest(visitor: str) -> str:
    """Return what is stored of a visitor: the cookie itself would open the run."""
    return hashlib.sha256(b"run owner " + visitor.encode()).hexdigest()[:32]


def known(request: HttpRequest) -> str:
    """Return the reader's cookie, empty when they have none."""
    return str(request.COOKIES.get(COOKIE, ""))


def known_or_new(request: HttpRequest) -> str:
    """Return the reader's cookie, or a fresh one to be given with ``remember``."""
    return known(request) or secrets.token_urlsafe(24)


def remember(response: HttpResponse, visitor: str) -> None:
    """Give the cookie to the browser: out of reach of scripts and other sites."""
    response.set_cookie(
        COOKIE,
        visitor,
        max_age=MONTH,
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )


def owns(visitor: str, run: Run) -> bool:
    """Tell whether the run was started in this visitor's browser."""
    return bool(visitor) and run.started_by == digest(visitor)


def of_scope(scope: dict[str, Any]) -> str:
    """Return the cookie in the headers of an ASGI scope, empty when there is none."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            return parse_cookie(value.decode("latin-1")).get(COOKIE, "")
    return ""
