"""Tokens that are none, at real processes: 401 or 403 before a task exists."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from billing_agent.card import REST_PATH, RPC_PATH
from billing_agent.identity.issuer import JWKS_PATH, TOKEN_PATH
from tests.billing_agent.contract.watch import rows
from tests.security.bindings import (
    BINDINGS,
    EVERYWHERE,
    RPC,
    ask,
    message,
    post,
)

pytestmark = pytest.mark.processes

CHALLENGE = 'Bearer realm="billing-agent"'


class Forger:
    """Signs what it likes, with the issuer's own key where it says so."""

    def __init__(self, demo):
        self.issuer = demo.web_url
        self.subject = f"forged-{secrets.token_hex(4)}"
        self.key = ECKey.import_key(
            json.loads((demo.var_dir / "issuer-key.json").read_text())
        )

    def claims(self, **changed):
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": "billing-agent",
            "sub": self.subject,
            "tenant": "acme",
            "client_id": "workshop",
            "iat": now,
            "exp": now + 600,
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key=None, header=None, **changed):
        head = {"alg": "ES256", "typ": "at+jwt", "kid": self.key.kid, **(header or {})}
        algorithms = ["ES256", "HS256"]
        key = key or self.key
        return jwt.encode(head, self.claims(**changed), key, algorithms=algorithms)

    def unsigned(self):
        head = {"alg": "none", "typ": "at+jwt"}
        parts = [json.dumps(part).encode() for part in (head, self.claims())]
        return ".".join(base64.urlsafe_b64encode(p).decode().strip("=") for p in parts)

    def by_public_key(self):
        """Sign with an HMAC whose key is the public key, as it is published."""
        published = json.dumps(self.key.as_dict(private=False)).encode()
        secret = OctKey.import_key(published)
        return self.token(secret, {"alg": "HS256"})

    def refused(self):
        """Return every token that must not be let in, by what is wrong with it."""
        now = int(time.time())
        good = self.token()
        head, claims, signature = good.split(".")
        return {
            "another audience": self.token(aud="other-agent"),
            "no audience": self.token(aud=None),
            "another issuer": self.token(iss="http://evil.example"),
            "expired": self.token(exp=now - 3600),
            "without an end": self.token(exp=None),
            "not yet": self.token(nbf=now + 3600),
            "without a subject": self.token(sub=None),
            "of the orchestrator": self.token(sub="orchestrator/r-1"),
            "of another kind": self.token(header={"typ": "JWT"}),
            "another key": self.token(ECKey.generate_key("P-256")),
            "unsigned": self.unsigned() + ".",
            "HMAC with the public key": self.by_public_key(),
            "changed": ".".join((head, claims[:-2] + "AA", signature)),
            "cut": ".".join((head, claims, "")),
            "text": "hello",
            "very long": good + "A" * 10_000,
        }


@pytest.fixture
def forger(demo):
    # The issuer makes its key when somebody asks for it.
    httpx.get(demo.web_url + JWKS_PATH).raise_for_status()
    return Forger(demo)


@pytest.fixture
async def door(demo):
    """Return a factory of clients without a token."""
    clients = []

    def make(where):
        url = demo.router_url if where == "router" else demo.replicas[where]
        clients.append(httpx.AsyncClient(base_url=url, timeout=20))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


async def nothing_was_begun(demo, subject):
    query = "SELECT count(*) FROM billing_agent_a2atask WHERE owner = %s"
    return await rows(demo, query, subject) == [(0,)]


def challenged(answer, binding, status, error):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith(CHALLENGE)
    assert f'error="{error}"' in challenge
    code = answer.json()["error"]["code"]
    assert code == (-32000 if binding == RPC else status)


async def test_forgers_good_token_is_let_in(demo, forger, door):
    """Otherwise what follows would prove nothing."""
    headers = {"Authorization": f"Bearer {forger.token()}", "A2A_Version": "1.0"}
    for where in EVERYWHERE:
        answer = await ask(door(where), RPC, "ListTasks", {}, **headers)
        assert answer.json()["result"]["totalSize"] == 0


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_token_that_does_not_verify_is_refused(
    demo, forger, door, where, binding
):
    http = door(where)
    for token in forger.refused().values():
        for method in ("SendMessage", "SendStreamingMessage"):
            headers = {"Authorization": f"Bearer {token}", "A2A_Version": "1.0"}
            answer = await ask(http, binding, method, message("hello"), **headers)
            challenged(answer, binding, 401, "invalid_token")
            assert token not in answer.text
    assert await nothing_was_begun(demo, forger.subject)


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_token_without_a_tenant_is_forbidden(demo, forger, door, where, binding):
    http = door(where)
    for tenant in (None, "", "ac me", ["acme"], {"acme": 1}, 7, "a" * 64):
        token = forger.token(tenant=tenant)
        headers = {"Authorization": f"Bearer {token}", "A2A_Version": "1.0"}
        answer = await ask(http, binding, "SendMessage", message("hello"), **headers)
        challenged(answer, binding, 403, "insufficient_scope")
    assert await nothing_was_begun(demo, forger.subject)


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_nothing_is_served_without_a_token(door, where):
    http = door(where)
    paths = [RPC_PATH, f"{REST_PATH}/tasks", "/demo/ledger", "/acme/a2a/", "/nothing"]
    for path in paths:
        for verb in ("GET", "POST"):
            answer = await http.request(verb, path, json={})
            assert answer.status_code == 401, (verb, path)
            assert answer.headers["www-authenticate"] == CHALLENGE
            assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("where", EVERYWHERE)
async def test_token_counts_in_its_header_only(forger, door, where):
    http, token = door(where), forger.token()
    ways = [
        {"params": {"access_token": token}},
        {"cookies": {"access_token": token}},
        {"headers": {"X-Authorization": f"Bearer {token}"}},
        {"headers": {"Proxy-Authorization": f"Bearer {token}"}},
        {"headers": {"Authorization": f"Basic {token}"}},
        {"headers": [("Authorization", f"Bearer {token}")] * 2},
    ]
    for way in ways:
        request = http.build_request("GET", f"{REST_PATH}/tasks", **way)
        answer = await http.send(request)
        assert answer.status_code == 401
        assert token not in answer.text


async def test_caller_that_sends_too_fast_is_told_when_to_come_back(forger, door):
    http = door("replica-a")
    headers = {"Authorization": f"Bearer {forger.token()}", "A2A-Version": "1.0"}
    refused = None
    for _ in range(100):
        calls = [http.get("/nothing", headers=headers) for _ in range(20)]
        answers = await asyncio.gather(*calls)
        assert {answer.status_code for answer in answers} <= {404, 429}
        refused = next((each for each in answers if each.status_code == 429), None)
        if refused is not None:
            break
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    other = {**headers, "Authorization": f"Bearer {forger.token(sub='another')}"}
    answer = await http.get(f"{REST_PATH}/tasks", headers=other)
    assert answer.status_code == 200


async def test_secret_of_a_client_opens_its_own_subjects_only(demo):
    secret = (demo.var_dir / "client-orchestrator").read_text()
    form = {"grant_type": "client_credentials", "tenant": "acme"}
    async with httpx.AsyncClient(base_url=demo.web_url) as http:
        for subject, status in [("orchestrator/r-1", 200), ("someone", 400)]:
            answer = await http.post(
                TOKEN_PATH,
                data={**form, "subject": subject},
                auth=("orchestrator", secret),
            )
            assert answer.status_code == status
        guessed = await http.post(
            TOKEN_PATH, data=form, auth=("orchestrator", "canary-guess")
        )
        assert guessed.status_code == 401
        assert "canary-guess" not in guessed.text
        assert (await http.get(TOKEN_PATH)).status_code == 405


async def test_only_the_web_process_is_an_issuer(demo, make_peer):
    for where in EVERYWHERE:
        peer = await make_peer(where)
        assert (await post(peer.http, TOKEN_PATH, {})).status_code == 404
        assert (await peer.http.get(JWKS_PATH)).status_code == 404
