"""Sockets open from pages of this address only.

Browsers send cookies with a socket whatever page opens it, and no CSRF token, so the
Origin header is all there is. Another port of the same machine is another origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class SameOriginSockets:
    """ASGI middleware that denies a socket opened from anywhere else (RFC 6455, 10.2).

    The origin has to be the address the socket itself was opened at, under a host
    name served here, or one of ``CSRF_TRUSTED_ORIGINS``, as for a form.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the socket on, or deny it."""
        app = self._app if _same_origin(scope) else WebsocketDenier()
        await app(scope, receive, send)


def _same_origin(scope: Scope) -> bool:
    origin, host = _only(scope, b"origin"), _only(scope, b"host")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    here = {f"http://{host}", f"https://{host}"}
    return origin in here or origin in settings.CSRF_TRUSTED_ORIGINS


def _only(scope: Scope, name: bytes) -> str:
    """Return a header, in lower case; empty when it is absent or given twice."""
    values = [value for given, value in scope["headers"] if given == name]
    return values[0].decode("latin-1").lower() if len(values) == 1 else ""
