"""Who the caller is: access tokens verified against their issuer's keys."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jws import JWSRegistry, extract_compact

from billing_agent.errors import CallerForbidden, TokenRefused
from billing_agent.identity.keys import IssuerKeys
from billing_agent.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import httpx

RESERVED_PREFIX = "orchestrator/"
CLOCK_SKEW = 30
_TOKEN_LIMIT = 8192
_SUBJECT_LIMIT = 256
_TENANT = re.compile(r"[A-Za-z0-9_-]{1,63}")
_TYPES = frozenset({"at+jwt", "application/at+jwt"})


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified caller: what the token says, never what the request says."""

    subject: str
    tenant: str
    client_id: str


def subject_usable(subject: str) -> bool:
    """Return whether a subject is printable text that every store can hold."""
    return 0 < len(subject) <= _SUBJECT_LIMIT and subject.isprintable()


class TokenVerifier:
    """Verifies JWT access tokens (RFC 9068, section 4).

    Args:
        issuer: the ``iss`` every token must carry, and where its keys are found.
        audience: the ``aud`` a token must name.
        reserved_for: the one client id whose tokens may have a subject that begins
            with ``RESERVED_PREFIX``.
        algorithms: the signature algorithms accepted; never ``none`` or an HMAC.
        remembered: how many verified tokens are kept, so that a token costs its
            signature check once.
        now: seconds since the epoch.
        transport: how the issuer is reached; httpx's own when left out.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        *,
        reserved_for: str,
        algorithms: Collection[str] = ("ES256",),
        remembered: int = 1024,
        now: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._reserved_for = reserved_for
        # Header parameters it does not know are ignored unless they are critical.
        self._signatures = JWSRegistry(
            algorithms=list(algorithms), strict_check_header=False
        )
        self._now = now
        self._keys = IssuerKeys(issuer, transport=transport)
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(now()),
            leeway=CLOCK_SKEW,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        self._known: Recent[bytes, tuple[Caller, float]] = Recent(remembered)

    async def verify(self, token: str) -> Caller:
        """Return who presents the token.

        Raises:
            TokenRefused: it does not verify.
            CallerForbidden: it does, but names no usable tenant.
            IssuerUnreachable: the issuer's keys are not known and cannot be had.
        """
        mark = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if (known := self._known.recall(mark)) and self._now() < known[1]:
            return known[0]
        claims = await self._verified(token)
        caller = self._caller(claims)
        self._known.keep(mark, (caller, claims["exp"]))
        return caller

    async def _verified(self, token: str) -> dict[str, Any]:
        if len(token) > _TOKEN_LIMIT:
            raise TokenRefused("the token is too long")
        try:
            header = extract_compact(token.encode("ascii")).protected
            if str(header.get("typ")).lower() not in _TYPES:
                raise TokenRefused("the token is no access token")
            keys = await self._keys.get(header.get("kid"))
            claims = jwt.decode(token, keys, registry=self._signatures).claims
            self._claims.validate(claims)
        except ExpiredTokenError:
            raise TokenRefused("the token has expired") from None
        except (JoseError, ValueError, TypeError, AttributeError, KeyError):
            # joserfc answers a header or key of an unexpected shape with these.
            raise TokenRefused("the token does not verify") from None
        return claims

    def _caller(self, claims: dict[str, Any]) -> Caller:
        subject, tenant = claims["sub"], claims.get("tenant")
        client_id = str(claims.get("client_id", ""))
        if not subject_usable(subject):
            raise TokenRefused("the subject cannot be used")
        if subject.startswith(RESERVED_PREFIX) and client_id != self._reserved_for:
            raise TokenRefused("the subject is reserved for another client")
        if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
            raise CallerForbidden("the token names no usable tenant")
        return Caller(subject, tenant, client_id)


def from_settings() -> TokenVerifier:
    """Return the verifier of this deployment; the demo's own issuer signs ES256."""
    own = settings.OIDC_ISSUER == settings.WEB_URL
    return TokenVerifier(
        settings.OIDC_ISSUER,
        settings.OIDC_AUDIENCE,
        reserved_for=settings.OIDC_CLIENT_ID,
        algorithms=("ES256",) if own else ("ES256", "RS256"),
    )
