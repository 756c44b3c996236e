"""The demo's issuer, asked as any OAuth 2 client would ask it."""

from __future__ import annotations

import base64
import json
import stat
import time
from unittest.mock import patch

import httpx
import pytest
from asgiref.sync import sync_to_async
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from django.conf import settings
from django.db import OperationalError, connections
from django.test import AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws

from billing_agent.errors import TokenRefused
from billing_agent.identity import clients, issuer, tokens
from billing_agent.identity.tokens import Caller, TokenVerifier
from billing_agent.models import Tenant

pytestmark = [
    pytest.mark.urls("billing_agent.identity.issuer"),
    pytest.mark.django_db(transaction=True),
]
ORCHESTRATOR = settings.OIDC_CLIENT_ID


@pytest.fixture(autouse=True)
async def tenant(transactional_db):
    await Tenant.objects.acreate(slug="acme", name="Acme")
    yield
    # The views' thread has a connection of its own.
    await sync_to_async(connections.close_all)()


def secret_of(client_id):
    return clients.find(client_id).secret


def basic(client_id, secret=None):
    secret = secret_of(client_id) if secret is None else secret
    credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


async def ask(headers=None, method="post", **form):
    form = {"grant_type": "client_credentials", "tenant": "acme"} | form
    form = {name: value for name, value in form.items() if value is not None}
    http = AsyncClient(enforce_csrf_checks=True)
    return await getattr(http, method)("/oauth/token", form, headers=headers)


class Served(httpx.AsyncBaseTransport):
    """Reaches the issuer's views without a network."""

    async def handle_async_request(self, request):
        answer = await AsyncClient().get(request.url.path)
        return httpx.Response(answer.status_code, content=answer.content)


def verifier():
    return TokenVerifier(
        settings.OIDC_ISSUER,
        settings.OIDC_AUDIENCE,
        reserved_for=ORCHESTRATOR,
        transport=Served(),
    )


async def test_token_verifies_by_discovery():
    answer = await ask(basic("workshop"), subject="somebody")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 600)
    assert answer["Cache-Control"] == "no-store"
    caller = await verifier().verify(body["access_token"])
    assert caller == Caller("acme/somebody", "acme", "workshop")


async def test_token_has_the_header_and_claims_of_rfc_9068():
    answer = await ask(basic("workshop"))
    signed = jws.extract_compact(answer.json()["access_token"].encode())
    assert signed.protected["typ"] == "at+jwt"
    assert signed.protected["alg"] == "ES256"
    assert signed.protected["kid"] == issuer.signing_key().kid
    claims = json.loads(signed.payload)
    assert set(claims) == {
        *("iss", "aud", "sub", "client_id", "tenant", "scope", "iat", "exp", "jti")
    }
    assert claims["exp"] - claims["iat"] == 600
    assert abs(claims["iat"] - time.time()) < 60
    assert claims["sub"] == "acme/workshop"


async def test_secret_may_be_in_the_form():
    answer = await ask(client_id="workshop", client_secret=secret_of("workshop"))
    assert answer.status_code == 200


async def test_secret_in_the_address_counts_nothing():
    http = AsyncClient(query_string="")
    query = f"client_id=workshop&client_secret={secret_of('workshop')}"
    form = {"grant_type": "client_credentials", "tenant": "acme"}
    answer = await http.post(f"/oauth/token?{query}", form)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("workshop", "wrong"),
        basic("nobody", "wrong"),
        basic("nobody", ""),
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe:x").decode()},
        {"Authorization": "Bearer x"},
    ],
)
async def test_client_that_does_not_prove_itself_is_refused(headers):
    answer = await ask(headers)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Basic")
    assert answer.json()["error"] == "invalid_client"


async def test_unknown_client_and_wrong_secret_look_alike():
    unknown = await ask(basic("nobody", "wrong"))
    wrong = await ask(basic("workshop", "wrong"))
    assert unknown.content == wrong.content


@pytest.mark.parametrize("grant", ["password", "", "a\0", None])
async def test_other_grants_are_refused(grant):
    answer = await ask(basic("workshop"), grant_type=grant)
    assert answer.status_code == 400
    assert answer.json()["error"] == "unsupported_grant_type"


async def test_scope_of_the_card_may_be_asked_for():
    answer = await ask(basic("workshop"), scope="invoices:read")
    assert answer.json()["scope"] == "invoices:read"


async def test_other_scopes_are_refused():
    answer = await ask(basic("workshop"), scope="invoices:write")
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_scope"


@pytest.mark.parametrize("tenant", ["umbrella", "", None, "acme\0", "ACME"])
async def test_tenant_that_is_none_is_refused(tenant):
    answer = await ask(basic("workshop"), tenant=tenant)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("client", "subject"),
    [
        ("workshop", "orchestrator/run"),
        ("workshop", ORCHESTRATOR),
        ("workshop", "line\nbreak"),
        ("workshop", "s" * 257),
        (ORCHESTRATOR, "somebody"),
        (ORCHESTRATOR, "workshop"),
    ],
)
async def test_subject_of_another_client_is_refused(client, subject):
    answer = await ask(basic(client), subject=subject)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("client", "asked", "subject"),
    [
        (ORCHESTRATOR, "orchestrator/run", "orchestrator/run"),
        (ORCHESTRATOR, None, ORCHESTRATOR),
        ("workshop", "", "acme/workshop"),
        ("workshop", "Zoë", "acme/Zoë"),
    ],
)
async def test_subject_a_client_may_use(client, asked, subject):
    answer = await ask(basic(client), subject=asked)
    caller = await verifier().verify(answer.json()["access_token"])
    assert caller == Caller(subject, "acme", client)


def test_client_may_be_bound_to_tenants():
    client = clients.Client("name", "secret", tenants=frozenset({"acme"}))
    assert client.may_speak_for("acme")
    assert not client.may_speak_for("globex")


async def test_token_endpoint_takes_only_posts():
    answer = await ask(method="get")
    assert answer.status_code == 405


async def test_database_that_is_gone_is_said_as_json():
    with patch.object(issuer, "_exists", side_effect=OperationalError("secret")):
        answer = await ask(basic("workshop"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json() == {"error": "temporarily_unavailable"}


async def test_key_set_has_the_public_half_only():
    answer = await AsyncClient().get("/oauth/jwks.json")
    (key,) = answer.json()["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "kid", "alg", "use"}


async def test_metadata_is_that_of_rfc_8414():
    answer = await AsyncClient().get("/.well-known/oauth-authorization-server")
    metadata = AuthorizationServerMetadata(answer.json())
    metadata.validate_token_endpoint_auth_methods_supported()
    metadata.validate_grant_types_supported()
    assert metadata["response_types_supported"] == []
    assert metadata["issuer"] == settings.WEB_URL
    assert metadata["token_endpoint"] == settings.WEB_URL + "/oauth/token"
    assert metadata["jwks_uri"] == settings.WEB_URL + "/oauth/jwks.json"


def test_own_issuer_is_not_served_beside_an_external_one(settings):
    settings.OIDC_ISSUER = "https://issuer.example"
    assert issuer._addresses() == []


def test_verifier_of_the_settings_takes_only_the_own_algorithm():
    assert tokens.from_settings()._signatures.allowed == ["ES256"]


def test_verifier_of_an_external_issuer_takes_rsa_too(settings):
    settings.OIDC_ISSUER = "https://issuer.example"
    assert tokens.from_settings()._signatures.allowed == ["ES256", "RS256"]


def test_key_and_secret_are_kept_for_their_owner_only():
    issuer.signing_key(), clients.workshop_secret()
    for name in ("issuer-key.json", "client-workshop"):
        mode = (settings.VAR_DIR / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


text = st.text(max_size=12)


@given(st.dictionaries(st.sampled_from(["grant_type", "scope", "client_id"]), text))
def test_any_form_is_answered_in_json(form):
    request = issuer.TokenRequest("POST", {}, {**form, "client_secret": "x"})
    with patch.object(issuer.Issuer, "create_oauth2_request", lambda *_: request):
        answer = issuer._token(None)
    assert answer.status_code in {400, 401}
    assert json.loads(answer.content)["error"]


async def test_verifier_refuses_the_token_of_another_audience():
    answer = await ask(basic("workshop"))
    other = TokenVerifier(
        settings.OIDC_ISSUER, "other", reserved_for="", transport=Served()
    )
    with pytest.raises(TokenRefused):
        await other.verify(answer.json()["access_token"])


async def test_one_subject_asked_for_by_two_tenants_is_two_subjects():
    await Tenant.objects.aget_or_create(slug="globex", name="Globex")
    subjects = set()
    for tenant in ("acme", "globex"):
        answer = await ask(basic("workshop"), subject="somebody", tenant=tenant)
        caller = await verifier().verify(answer.json()["access_token"])
        subjects.add((caller.subject, caller.tenant))

    assert subjects == {("acme/somebody", "acme"), ("globex/somebody", "globex")}


async def test_subject_too_long_within_its_tenant_is_refused():
    answer = await ask(basic("workshop"), subject="s" * 255)

    assert answer.status_code == 400
