"""The demo's own issuer: OAuth 2 client credentials, JWT access tokens, a JWKS.

An external issuer takes its place by ``OIDC_ISSUER``; then these addresses are not
served.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from authlib.oauth2.rfc6749 import AuthorizationServer
from authlib.oauth2.rfc6749.errors import InvalidClientError, InvalidRequestError
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from billing_agent.identity import clients
from billing_agent.identity.kept import kept
from billing_agent.identity.tokens import subject_usable
from billing_agent.models import Tenant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.urls import URLPattern

TOKEN_LIFETIME = 600
TOKEN_PATH = "/oauth/token"  # noqa: S105
JWKS_PATH = "/oauth/jwks.json"
METADATA_PATH = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class Speaker:
    """In whose name a token is asked for."""

    subject: str
    tenant: str


@dataclass(slots=True)
class TokenRequest:
    """A request to the token endpoint, as Authlib reads one.

    Authlib's own class insists on https, which ends in front of this process.
    """

    method: str
    headers: Mapping[str, str]
    form: dict[str, str]
    payload: BasicOAuth2Payload = field(init=False)
    client: clients.Client | None = None
    user: Speaker | None = None
    auth_method: str = ""

    def __post_init__(self) -> None:
        self.payload = BasicOAuth2Payload(self.form)


@cache
def signing_key() -> ECKey:
    """Return the issuer's key, made at first start (RFC 7518, section 3.4)."""
    text = kept(settings.VAR_DIR / "issuer-key.json", _new_key)
    return ECKey.import_key(json.loads(text))


def _new_key() -> str:
    key = ECKey.generate_key("P-256", {"alg": "ES256", "use": "sig"}, auto_kid=True)
    return json.dumps(key.as_dict(private=True))


def access_token(client_id: str, speaker: Speaker) -> str:
    """Return a signed access token (RFC 9068, section 2)."""
    key, now = signing_key(), int(time.time())
    claims = {
        "iss": settings.OIDC_ISSUER,
        "aud": settings.OIDC_AUDIENCE,
        "sub": speaker.subject,
        "client_id": client_id,
        "tenant": speaker.tenant,
        "scope": clients.SCOPE,
        "iat": now,
        "exp": now + TOKEN_LIFETIME,
        "jti": secrets.token_urlsafe(16),
    }
    header = {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
    return jwt.encode(header, claims, key, algorithms=["ES256"])


class ClientCredentials(ClientCredentialsGrant):  # type: ignore[misc]
    """The grant of RFC 6749, section 4.4, with ``tenant`` and ``subject`` beside it."""

    TOKEN_ENDPOINT_AUTH_METHODS = clients.AUTH_METHODS

    def validate_token_request(self) -> None:
        super().validate_token_request()
        client, form = self.client, self.request.form
        tenant, subject = form.get("tenant", ""), form.get("subject") or client.name
        if not (client.may_speak_for(tenant) and _exists(tenant)):
            raise InvalidRequestError("the client may not speak for this tenant")
        speaker = Speaker(client.within(tenant, subject), tenant)
        if not (client.may_be(subject) and subject_usable(speaker.subject)):
            raise InvalidRequestError("the client may not use this subject")
        self.request.user = speaker

    def create_token_response(self) -> tuple[int, dict[str, Any], Any]:
        answer = {
            "access_token": access_token(self.client.name, self.request.user),
            "token_type": "Bearer",
            "expires_in": TOKEN_LIFETIME,
            "scope": clients.SCOPE,
        }
        return 200, answer, self.TOKEN_RESPONSE_HEADER


def _exists(tenant: str) -> bool:
    return "\0" not in tenant and Tenant.objects.filter(slug=tenant).exists()


class Issuer(AuthorizationServer):  # type: ignore[misc]
    """Authlib's authorization server on Django's requests and answers."""

    def query_client(self, client_id: str) -> clients.Client:
        return clients.find(client_id)

    def create_oauth2_request(self, request: HttpRequest) -> TokenRequest:
        form = request.POST.dict()
        return TokenRequest(request.method or "", request.headers, form)

    def handle_response(
        self, status: int, body: dict[str, Any], headers: Iterable[tuple[str, str]]
    ) -> HttpResponse:
        return HttpResponse(json.dumps(body), status=status, headers=dict(headers))

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Tell nobody: no part of the demo listens."""


_issuer = Issuer(scopes_supported=[clients.SCOPE])
_issuer.register_grant(ClientCredentials)


def _token(request: HttpRequest) -> HttpResponse:
    try:
        answer: HttpResponse = _issuer.create_token_response(request)
    except UnicodeDecodeError:  # from a Basic header that is no text
        answer = _issuer.handle_error_response(
            None, InvalidClientError(status_code=401)
        )
    except DatabaseError:
        later = {"error": "temporarily_unavailable"}
        answer = JsonResponse(later, status=503, headers={"Retry-After": "1"})
    return answer


@csrf_exempt
@require_POST
async def token(request: HttpRequest) -> HttpResponse:
    """Answer a token request (RFC 6749, sections 4.4 and 5)."""
    return await sync_to_async(_token)(request)


@require_safe
async def jwks(request: HttpRequest) -> HttpResponse:
    """Return the public half of the signing key (RFC 7517, section 5)."""
    keys = KeySet([signing_key()]).as_dict(private=False)
    return JsonResponse(keys, headers={"Cache-Control": "public, max-age=300"})


@require_safe
async def metadata(request: HttpRequest) -> HttpResponse:
    """Return where everything is (RFC 8414, section 2)."""
    base = settings.OIDC_ISSUER
    facts = {
        "issuer": base,
        "token_endpoint": base + TOKEN_PATH,
        "jwks_uri": base + JWKS_PATH,
        "grant_types_supported": [clients.GRANT],
        "scopes_supported": [clients.SCOPE],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": list(clients.AUTH_METHODS),
    }
    return JsonResponse(facts, headers={"Cache-Control": "public, max-age=300"})


def _addresses() -> list[URLPattern]:
    if settings.OIDC_ISSUER != settings.WEB_URL:
        return []
    views = {TOKEN_PATH: token, JWKS_PATH: jwks, METADATA_PATH: metadata}
    return [path(address.lstrip("/"), view) for address, view in views.items()]


urlpatterns = _addresses()
