"""Access tokens: what verifies, what does not, and what it costs."""

from __future__ import annotations

import base64
import hmac
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_agent.errors import CallerForbidden, TokenRefused
from billing_agent.identity.keys import IssuerUnreachable
from billing_agent.identity.tokens import CLOCK_SKEW, Caller
from tests.billing_agent.identity.issuers import AUDIENCE, TestIssuer, verifier_of


async def test_verified_token_names_its_caller(issuer, verifier):
    caller = await verifier.verify(issuer.token())
    assert caller == Caller("someone", "acme", "workshop")


async def test_audience_may_be_one_of_several(issuer, verifier):
    token = issuer.token(aud=["other", AUDIENCE])
    assert (await verifier.verify(token)).tenant == "acme"


async def test_missing_client_id_is_an_empty_one(issuer, verifier):
    assert (await verifier.verify(issuer.token(client_id=None))).client_id == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "someone-else"},
        {"aud": None},
        {"exp": None},
        {"exp": "tomorrow"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "line\nbreak"},
        {"sub": "nul\0"},
        {"sub": "bidi\u202eevil"},
        {"sub": "s" * 257},
    ],
)
async def test_claims_that_do_not_hold_are_refused(issuer, verifier, changed):
    with pytest.raises(TokenRefused):
        await verifier.verify(issuer.token(**changed))


@pytest.mark.parametrize(
    ("claim", "seconds"),
    [
        ("exp", -CLOCK_SKEW - 5),
        ("iat", CLOCK_SKEW + 60),
        ("nbf", CLOCK_SKEW + 60),
    ],
)
async def test_times_that_do_not_hold_are_refused(issuer, verifier, claim, seconds):
    moment = int(time.time()) + seconds
    with pytest.raises(TokenRefused):
        await verifier.verify(issuer.token(**{claim: moment}))


async def test_expiry_is_named_as_the_reason(issuer, verifier):
    with pytest.raises(TokenRefused, match="expired"):
        await verifier.verify(issuer.token(exp=1))


async def test_clock_may_be_a_little_behind(issuer, verifier):
    token = issuer.token(exp=int(time.time()) - CLOCK_SKEW + 10)
    assert await verifier.verify(token)


@pytest.mark.parametrize("tenant", [None, "", 5, "a b", "acme\n", "nul\0", "t" * 64])
async def test_unusable_tenant_is_forbidden(issuer, verifier, tenant):
    with pytest.raises(CallerForbidden):
        await verifier.verify(issuer.token(tenant=tenant))


async def test_reserved_subject_is_refused_to_other_clients(issuer, verifier):
    with pytest.raises(TokenRefused, match="reserved"):
        await verifier.verify(issuer.token(sub="orchestrator/run"))


async def test_reserved_subject_is_the_orchestrators(issuer, verifier):
    token = issuer.token(sub="orchestrator/run", client_id="orchestrator")
    assert (await verifier.verify(token)).subject == "orchestrator/run"


@pytest.mark.parametrize("typ", [None, "JWT", "dpop+jwt"])
async def test_token_of_another_kind_is_refused(issuer, verifier, typ):
    with pytest.raises(TokenRefused):
        await verifier.verify(issuer.token(header={"typ": typ}))


async def test_long_form_of_the_type_is_accepted(issuer, verifier):
    token = issuer.token(header={"typ": "application/at+jwt"})
    assert await verifier.verify(token)


def part(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


async def test_unsigned_token_is_refused(issuer, verifier):
    header = {"alg": "none", "typ": "at+jwt", "kid": issuer.key.kid}
    token = f"{part(header)}.{part(issuer.claims())}."
    with pytest.raises(TokenRefused):
        await verifier.verify(token)


async def test_hmac_with_the_public_key_is_refused(issuer, verifier):
    header = {"alg": "HS256", "typ": "at+jwt", "kid": issuer.key.kid}
    signed = f"{part(header)}.{part(issuer.claims())}"
    secret = issuer.key.as_pem(private=False)
    mac = hmac.digest(secret, signed.encode(), "sha256")
    token = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    with pytest.raises(TokenRefused):
        await verifier.verify(token)


async def test_changed_claims_break_the_signature(issuer, verifier):
    head, _, signature = issuer.token().split(".")
    token = f"{head}.{part(issuer.claims(tenant='globex'))}.{signature}"
    with pytest.raises(TokenRefused):
        await verifier.verify(token)


CRITICAL = "https://example/critical"


async def test_critical_header_it_does_not_know_is_refused(issuer, verifier):
    header = {"crit": [CRITICAL], CRITICAL: "x"}
    with pytest.raises(TokenRefused):
        await verifier.verify(issuer.token(header=header))


async def test_other_header_it_does_not_know_is_ignored(issuer, verifier):
    assert await verifier.verify(issuer.token(header={"nonce": "x"}))


async def test_rsa_is_refused_unless_allowed(issuer):
    issuer.use_rsa()
    token = issuer.token(header={"alg": "RS256"})
    with pytest.raises(TokenRefused):
        await verifier_of(issuer).verify(token)
    assert await verifier_of(issuer, algorithms=("ES256", "RS256")).verify(token)


async def test_signature_of_another_key_with_the_same_id_is_refused(issuer, verifier):
    stranger = TestIssuer()
    with pytest.raises(TokenRefused):
        await verifier.verify(stranger.token())


@pytest.mark.parametrize(
    "token", ["", ".", "..", "a.b.c", "é.é.é", "W10.W10.W10", "null.null.", "x" * 9000]
)
async def test_what_is_no_token_is_refused(verifier, token):
    with pytest.raises(TokenRefused):
        await verifier.verify(token)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(header=json_values, payload=json_values)
async def test_any_header_and_payload_is_refused_cleanly(header, payload):
    token = f"{part(header)}.{part(payload)}.c2ln"
    with pytest.raises(TokenRefused):
        await verifier_of(TestIssuer()).verify(token)


@given(alg=json_values, kid=json_values, typ=st.sampled_from(["at+jwt", "AT+JWT"]))
async def test_any_algorithm_and_key_id_is_refused_cleanly(alg, kid, typ):
    token = f"{part({'alg': alg, 'kid': kid, 'typ': typ})}.{part({})}.c2ln"
    with pytest.raises(TokenRefused):
        await verifier_of(TestIssuer()).verify(token)


async def test_known_token_is_not_verified_again(issuer, verifier):
    token = issuer.token()
    first = await verifier.verify(token)
    issuer.down = True
    assert await verifier.verify(token) is first


async def test_known_token_is_forgotten_when_it_expires(issuer):
    now = time.time()
    verifier = verifier_of(issuer, now=lambda: now)
    token = issuer.token(exp=int(now) + 60)
    await verifier.verify(token)
    now += 60 + CLOCK_SKEW + 1
    with pytest.raises(TokenRefused, match="expired"):
        await verifier.verify(token)


async def test_memory_of_tokens_is_bounded(issuer):
    verifier = verifier_of(issuer, remembered=2)
    for subject in "abc":
        await verifier.verify(issuer.token(sub=subject))
    assert len(verifier._known) == 2


async def test_issuer_out_of_reach_is_no_fault_of_the_token(issuer, verifier):
    issuer.down = True
    with pytest.raises(IssuerUnreachable) as refused:
        await verifier.verify(issuer.token())
    assert refused.value.status == 503
