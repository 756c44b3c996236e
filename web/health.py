"""Liveness answered before anything else; readiness asked of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Liveness:
    """Answers ``GET /healthz`` itself: no thread, no database, no host check."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything else on."""
        if scope["type"] != "http" or scope["path"] != "/healthz":
            await self.app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"status": "ok"}'})


def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers, 503 when it does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok"})
