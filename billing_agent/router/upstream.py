"""One request passed on to a replica, and its answer passed back as it comes."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import httpx

from billing_agent.card import RPC_PATH
from billing_agent.errors import RequestRefused
from billing_agent.refusals import document, id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.types import Scope, Send

    from billing_agent.router.errand import Errand
    from billing_agent.router.routing import Choice

CONNECT_TIMEOUT = 1.0
Headers = list[tuple[bytes, bytes]]

# RFC 9110, section 7.6.1, and what the next hop is told anew.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_SET_ANEW = frozenset({b"accept-encoding", b"content-length"})


class ReplicaDown(Exception):
    """The replica takes no request: nothing of this one has run."""


class ReplicaBroke(RequestRefused):
    """The replica went away in the middle: what ran is unknown."""

    status = 502
    code = -32603

    def __init__(self, replica: str) -> None:
        super().__init__(f"{replica} broke off before its answer was complete")


def new_client(transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Return the one client of a router: connections kept, no stream ever cut.

    The idle time of a kept connection is far below a server's own, so that none is
    used while the server closes it.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    return httpx.AsyncClient(
        transport=transport,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        limits=limits,
        trust_env=False,
    )


async def ready(client: httpx.AsyncClient, replicas: Mapping[str, str]) -> list[str]:
    """Return the names of the replicas that say they are ready."""
    up = []
    for name, address in replicas.items():
        with contextlib.suppress(httpx.TransportError):
            answer = await client.get(f"{address}/readyz", timeout=CONNECT_TIMEOUT)
            up += [name] if answer.is_success else []
    return up


async def exchange(
    client: httpx.AsyncClient, address: str, errand: Errand, choice: Choice, send: Send
) -> None:
    """Send the request to the replica at ``address`` and pass its answer back.

    Raises:
        ReplicaDown: it refused the connection, or said that it is about to stop.
        ReplicaBroke: it broke off; nothing has been sent to the client.
        RequestRefused: the path is no path.
    """
    try:
        response = await _ask(client, address, errand)
        try:
            await _relay(response, errand, choice, send)
        finally:
            await response.aclose()
    except httpx.TransportError:
        raise ReplicaBroke(choice.replica) from None


async def _ask(
    client: httpx.AsyncClient, address: str, errand: Errand
) -> httpx.Response:
    scope = errand.scope
    try:
        # Made by hand: the caller's headers, and none of the client's own.
        request = httpx.Request(
            scope["method"],
            address + _target(scope),
            headers=list(_forwarded(scope["headers"])),
            content=errand.body or None,
        )
        response = await client.send(request, stream=True)
    except httpx.InvalidURL:
        raise RequestRefused("the path cannot be used") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ReplicaDown from error
    if response.status_code == 503 and "retry-after" in response.headers:
        await response.aclose()
        raise ReplicaDown
    return response


def _target(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


def _forwarded(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """Yield what the replica is told; never that a stream may be compressed."""
    dropped = _HOP_BY_HOP | _SET_ANEW | _named_by_connection(headers)
    yield from (pair for pair in headers if pair[0] not in dropped)
    yield b"accept-encoding", b"identity"


def _named_by_connection(headers: Headers) -> set[bytes]:
    values = [value for name, value in headers if name == b"connection"]
    return {name.strip().lower() for value in values for name in value.split(b",")}


async def _relay(
    response: httpx.Response, errand: Errand, choice: Choice, send: Send
) -> None:
    """Pass the response on: an event stream chunk by chunk, anything else whole.

    A stream whose replica goes away ends with an error event: ASGI has no other way
    to show that it is incomplete. Anything else is held until it is complete, so
    that it can still become an error.
    """
    headers = list(_returned(response, choice))
    start = {"type": "http.response.start", "status": response.status_code}
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        await send({**start, "headers": headers})
        await _stream(response, errand, choice, send)
    else:
        content = b"".join([chunk async for chunk in response.aiter_raw()])
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": content})


async def _stream(
    response: httpx.Response, errand: Errand, choice: Choice, send: Send
) -> None:
    last = b""
    try:
        async for chunk in response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except httpx.TransportError:
        last = _error_event(ReplicaBroke(choice.replica), errand.scope)
    await send({"type": "http.response.body", "body": last})


def _returned(
    response: httpx.Response, choice: Choice
) -> Iterator[tuple[bytes, bytes]]:
    headers = [(name.lower(), value) for name, value in response.headers.raw]
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    yield from (pair for pair in headers if pair[0] not in dropped)
    if "x-replica" not in response.headers:
        yield b"x-replica", choice.replica.encode()
    yield b"x-route-reason", choice.reason.encode()


def _error_event(error: RequestRefused, scope: Scope) -> bytes:
    """Return the error as the last event of a stream.

    The lines before it end an event that the replica left incomplete.
    """
    path = scope["path"]
    name = "" if path == RPC_PATH else "event: error\n"
    data = json.dumps(document(error, path, id_of(scope.get("a2a.body"))))
    return f"\n\n{name}data: {data}\n\n".encode()
