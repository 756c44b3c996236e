"""An issuer for tests: its keys, its tokens, and how it is reached."""

from __future__ import annotations

import time
from typing import Any

import httpx
from joserfc import jwt
from joserfc.jwk import ECKey, Key, KeySet, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.registry import HeaderParameter

from billing_agent.identity.tokens import TokenVerifier

ISSUER = "https://issuer.example"
AUDIENCE = "billing-agent"


def new_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "alg": "ES256", "use": "sig"})


class TestIssuer:
    """Signs tokens and answers for its keys; ``asked`` counts the key requests."""

    __test__ = False

    def __init__(self, issuer: str = ISSUER) -> None:
        self.issuer = issuer
        self.key: Key = new_key("first")
        self.published: list[Any] = [self.key]
        self.asked: list[str] = []
        self.answers = self.metadata()
        self.down = False
        self.transport = httpx.MockTransport(self._answer)

    def metadata(self) -> dict[str, Any]:
        return {"issuer": self.issuer, "jwks_uri": self.issuer + "/keys"}

    def rotate(self, kid: str) -> None:
        self.key = new_key(kid)
        self.published.append(self.key)

    def use_rsa(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "rsa"})
        self.published.append(self.key)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if self.down:
            raise httpx.ConnectError("down", request=request)
        if request.url.path == "/keys":
            keys = [key for key in self.published if isinstance(key, dict)]
            held = [key for key in self.published if not isinstance(key, dict)]
            keys += KeySet(held).as_dict(private=False)["keys"]
            return httpx.Response(200, json={"keys": keys})
        if request.url.path == "/.well-known/oauth-authorization-server":
            return httpx.Response(200, json=self.answers)
        return httpx.Response(404)

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "someone",
            "tenant": "acme",
            "client_id": "workshop",
            "iat": now,
            "exp": now + 600,
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, *, header: dict[str, Any] | None = None, **changed: Any) -> str:
        head = {"alg": "ES256", "typ": "at+jwt", "kid": self.key.kid, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        registry = JWSRegistry(
            {"https://example/critical": HeaderParameter("for tests", "str")},
            ["ES256", "RS256"],
            strict_check_header=False,
        )
        claims = self.claims(**changed)
        return jwt.encode(head, claims, self.key, registry=registry, default_type=None)


def verifier_of(issuer: TestIssuer, **options: Any) -> TokenVerifier:
    options = {"reserved_for": "orchestrator", "transport": issuer.transport} | options
    return TokenVerifier(issuer.issuer, AUDIENCE, **options)
