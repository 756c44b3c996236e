"""How a request that stops before a task exists looks from outside: always JSON."""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any

from billing_agent.card import RPC_PATH
from billing_agent.errors import CallerForbidden, RequestRefused, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

RequestId = str | int | None

# google.rpc names of the HTTP+JSON binding (A2A 1.0, section 11.6).
_GRPC_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "INVALID_ARGUMENT",
    421: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
}
_REASONS = {
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32600: "INVALID_REQUEST",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
    -32700: "INVALID_REQUEST",
}


class TokenMissing(TokenRefused):
    """The request carries no bearer token at all."""

    def __init__(self) -> None:
        super().__init__("a bearer token is required")


class HostRefused(RequestRefused):
    """The Host header names a host that is not served here (RFC 9110, 15.5.20)."""

    status = 421
    code = -32600

    def __init__(self) -> None:
        super().__init__("this host is not served here")


class BodyTooLarge(RequestRefused):
    """The body has more bytes than ``limit``."""

    status = 413
    code = -32600

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit} bytes")
        self.limit = limit


class BodyUnreadable(RequestRefused):
    """The body is not JSON as RFC 8259 defines it."""

    code = -32700

    def __init__(self) -> None:
        super().__init__("the body is not valid JSON in UTF-8")


class ContentTypeRefused(RequestRefused):
    """The body is declared to be something else than JSON."""

    code = -32005

    def __init__(self) -> None:
        super().__init__("the content type must be application/json")


class Later(RequestRefused):
    """Refused for now; ``retry_after`` is in seconds."""

    status = 503
    code = -32000

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateExceeded(Later):
    """The caller sends faster than it may."""

    status = 429

    def __init__(self, retry_after: float) -> None:
        super().__init__("too many requests", retry_after)


class NotServed(RequestRefused):
    """Nothing is served at this path, or not by this method.

    Args:
        status: 404 or 405.
        allowed: the methods served there, as the Allow header writes them.
    """

    code = -32601

    def __init__(self, status: int, allowed: str = "") -> None:
        super().__init__("this method is not served here" if allowed else "not found")
        self.status = status
        self.allowed = allowed


class Unexpected(RequestRefused):
    """Something broke; the log says what, the caller does not learn it."""

    status = 500
    code = -32603

    def __init__(self) -> None:
        super().__init__("internal error")


def id_of(document: Any) -> RequestId:
    """Return the id of a JSON-RPC request, None when it has no usable one."""
    given = document.get("id") if isinstance(document, dict) else None
    usable = isinstance(given, str | int) and not isinstance(given, bool)
    return given if usable else None


def document(error: RequestRefused, path: str, request_id: RequestId) -> dict[str, Any]:
    """Return the error as the binding at ``path`` writes it.

    JSON-RPC 2.0, section 5.1; A2A 1.0, section 11.6 for the HTTP+JSON binding.
    """
    if path == RPC_PATH:
        problem = {"code": error.code, "message": error.message}
        return {"jsonrpc": "2.0", "id": request_id, "error": problem}
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": _REASONS.get(error.code, _GRPC_STATUS[error.status]),
        "domain": "a2a-protocol.org",
        "metadata": {},
    }
    return {
        "error": {
            "code": error.status,
            "status": _GRPC_STATUS[error.status],
            "message": error.message,
            "details": [detail],
        }
    }


def status(error: RequestRefused, path: str) -> int:
    """Return the HTTP status of the error at ``path``.

    An error of the protocol itself travels with 200 on the JSON-RPC binding, as
    a2a-sdk sends it; a refusal by HTTP (401, 413, 429 ...) keeps its status.
    """
    return 200 if error.status == 400 and path == RPC_PATH else error.status


def _challenge(error: RequestRefused) -> str | None:
    """Return the challenge of RFC 6750, section 3, without a code for no token."""
    realm = 'Bearer realm="billing-agent"'
    if isinstance(error, TokenMissing):
        return realm
    if isinstance(error, TokenRefused):
        return f'{realm}, error="invalid_token", error_description="{error.message}"'
    if isinstance(error, CallerForbidden):
        return (
            f'{realm}, error="insufficient_scope", error_description="{error.message}"'
        )
    return None


def _headers(error: RequestRefused) -> Iterable[tuple[bytes, bytes]]:
    if challenge := _challenge(error):
        yield b"www-authenticate", challenge.encode()
    if isinstance(error, Later):
        yield b"retry-after", str(max(1, math.ceil(error.retry_after))).encode()
    if isinstance(error, NotServed) and error.allowed:
        yield b"allow", error.allowed.encode()


async def refuse(
    scope: Scope, send: Send, error: RequestRefused, request_id: RequestId = None
) -> None:
    """Answer the request with the error."""
    body = json.dumps(document(error, scope["path"], request_id)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *_headers(error),
    ]
    start = {"type": "http.response.start", "headers": headers}
    await send({**start, "status": status(error, scope["path"])})
    await send({"type": "http.response.body", "body": body})


async def never_html(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve the request; what escapes ``app`` becomes an answer like the others.

    Before the answer has begun the error is raised on, for the server's log. After
    that it ends here: Daphne would begin a second answer, an HTML page, inside the
    first one, and stop looking after its connections.
    """
    begun = ended = False

    async def watched(message: Message) -> None:
        nonlocal begun, ended
        begun = True
        ended = ended or _is_last(message)
        await send(message)

    try:
        await app(scope, receive, watched)
    except Exception:
        if not begun:
            await refuse(scope, send, Unexpected())
            raise
        logger.exception("The answer to %s broke off", scope["path"])
        if not ended:
            await send({"type": "http.response.body", "more_body": False})


def _is_last(message: Message) -> bool:
    is_body = message["type"] == "http.response.body"
    return is_body and not message.get("more_body", False)
