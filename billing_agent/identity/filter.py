"""The identity filter: who calls, settled before anything else looks at a request.

It stands in front of the embedded router and of every replica. What lies behind it
finds the caller in the ASGI scope and the verified tenant in the metadata of a send,
and nothing the caller wrote in the place of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http.request import split_domain_port, validate_host
from starlette.authentication import AuthCredentials, SimpleUser

from billing_agent import calls
from billing_agent.card import CARD_PATH, RPC_PATH
from billing_agent.errors import RequestRefused, TokenRefused
from billing_agent.facts import CallerVerified, Origin, announce
from billing_agent.identity.body import Body, ClientGone, encode
from billing_agent.identity.metadata import payloads, server_owned, stamped, stripped
from billing_agent.refusals import (
    ContentTypeRefused,
    HostRefused,
    RateExceeded,
    TokenMissing,
    never_html,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

    from billing_agent.identity.limits import RateLimiter
    from billing_agent.identity.tokens import TokenVerifier

OPEN_PATHS = (CARD_PATH, "/healthz", "/readyz")
_BODIED = frozenset({"POST", "PUT", "PATCH"})
_JSON = b"application/json"
_A2A_JSON = b"application/a2a+json"
Headers = list[tuple[bytes, bytes]]


class IdentityFilter:
    """Pure ASGI middleware: 401 and 403, limits, and the tenant stamp.

    Behind it the scope has ``user`` and ``auth`` as Starlette knows them, ``caller``
    (a ``Caller``) and, for a JSON body, ``a2a.body`` (the document) and ``a2a.call``
    (a ``Call``).

    Args:
        app: what is protected.
        verifier: says who presents a token.
        part: the name its facts are announced under.
        hosts: host names answered, as Django's ``ALLOWED_HOSTS`` writes them.
        body_limit: bytes a body may have.
        limiter: how fast a subject may send; no bound when left out.
        open_paths: what anybody may read, under any host name: nothing on them
            depends on the request.
        pass_token: whether ``app`` sees the token. A router passes it on; elsewhere
            nothing needs it any more.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        verifier: TokenVerifier,
        part: str,
        hosts: Collection[str],
        body_limit: int,
        limiter: RateLimiter | None = None,
        open_paths: Collection[str] = OPEN_PATHS,
        pass_token: bool = False,
    ) -> None:
        self._app = app
        self._verifier = verifier
        self._part = part
        self._hosts = list(hosts)
        self._body_limit = body_limit
        self._limiter = limiter
        self._open_paths = frozenset(open_paths)
        self._pass_token = pass_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through as its caller's, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await never_html(self._serve, scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        bodied = scope["method"] in _BODIED
        if scope["path"] in self._open_paths and not bodied:
            await self._app(scope, receive, send)
            return
        body = Body(receive, self._body_limit)
        try:
            admitted = await self._admitted(scope)
            if bodied:
                receive = body.replayed(await self._cleaned(admitted, body))
        except RequestRefused as error:
            await _refuse(scope, send, error, body)
        except ClientGone:
            return
        else:
            await self._app(admitted, receive, send)

    async def _admitted(self, scope: Scope) -> Scope:
        """Return the scope with its caller, once host, token and rate are right."""
        headers: Headers = scope["headers"]
        host, _ = split_domain_port(_only(headers, b"host").decode("latin-1"))
        if not validate_host(host, self._hosts):
            raise HostRefused
        caller = await self._verifier.verify(_bearer(headers))
        if self._limiter and (wait := self._limiter.take(caller.subject)):
            raise RateExceeded(wait)
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise RequestRefused("text has U+0000")
        return {
            **scope,
            "headers": [pair for pair in headers if self._passes(pair[0])],
            "caller": caller,
            "user": SimpleUser(caller.subject),
            "auth": AuthCredentials(["authenticated"]),
        }

    def _passes(self, name: bytes) -> bool:
        if name == b"authorization":
            return self._pass_token
        return not server_owned(name.decode("latin-1"))

    async def _cleaned(self, scope: Scope, body: Body) -> bytes:
        """Return the body without foreign marks, stamped when it is a send."""
        content = await body.read()
        if not content and scope["path"] != RPC_PATH:
            return content
        _check_content_type(scope)
        document = await body.document()
        clean = await self._stamped(scope, document)
        if clean is not document:
            content = encode(clean)
            scope["headers"] = _resized(scope["headers"], len(content))
        scope["a2a.body"] = clean
        return content

    async def _stamped(self, scope: Scope, document: Any) -> Any:
        path = scope["path"]
        call = scope["a2a.call"] = calls.read(path, document)
        clean = stripped(document, payloads(call.message))
        if call.kind != "send" or not isinstance(call.params, dict):
            return clean
        caller, before = scope["caller"], call.params.get("metadata")
        params = calls.read(path, clean).params
        after = stamped(params.get("metadata"), caller.tenant)
        origin = Origin(self._part, caller.subject, call.context_id, call.task_id)
        await announce(CallerVerified(caller.tenant, before or {}, after), origin)
        params = {**params, "metadata": after}
        return {**clean, "params": params} if path == RPC_PATH else params


async def _refuse(scope: Scope, send: Send, error: RequestRefused, body: Body) -> None:
    rpc = scope["path"] == RPC_PATH and scope["method"] == "POST"
    try:
        request_id = await body.request_id() if rpc else None
    except ClientGone:
        return
    await refuse(scope, send, error, request_id)


def _only(headers: Headers, name: bytes) -> bytes:
    """Return a header that must not be given twice; empty when it is, or absent."""
    values = [value for given, value in headers if given == name]
    return values[0] if len(values) == 1 else b""


def _bearer(headers: Headers) -> str:
    """Return the token of the Authorization header (RFC 6750, section 2.1)."""
    if not any(name == b"authorization" for name, _ in headers):
        raise TokenMissing
    scheme, _, token = _only(headers, b"authorization").partition(b" ")
    if scheme.lower() != b"bearer":
        raise TokenRefused("a single bearer token is required")
    return token.strip().decode("latin-1")


def _check_content_type(scope: Scope) -> None:
    given = _only(scope["headers"], b"content-type").partition(b";")[0]
    media_type = given.strip().lower()
    a2a_json = media_type == _A2A_JSON and scope["path"] != RPC_PATH
    if media_type != _JSON and not a2a_json:
        raise ContentTypeRefused


def _resized(headers: Headers, size: int) -> Headers:
    """Return the headers for a body that has been rewritten, whole, to ``size``."""
    replaced = {b"content-length", b"transfer-encoding"}
    kept = [pair for pair in headers if pair[0] not in replaced]
    return [*kept, (b"content-length", str(size).encode())]
