"""An issuer's keys: discovery, cache, refresh."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from billing_agent.identity.keys import (
    MAX_AGE,
    MIN_INTERVAL,
    RETRY_AFTER,
    IssuerKeys,
    IssuerUnreachable,
    issuer_client,
    metadata_addresses,
)
from tests.billing_agent.identity.issuers import TestIssuer


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(issuer, clock):
    return IssuerKeys(issuer.issuer, transport=issuer.transport, clock=clock)


def ids(key_set):
    return [key.kid for key in key_set]


def test_metadata_of_an_issuer_with_a_path_is_looked_for_in_both_places():
    assert metadata_addresses("https://host/realm/") == [
        "https://host/.well-known/oauth-authorization-server/realm",
        "https://host/realm/.well-known/openid-configuration",
    ]


async def test_keys_are_fetched_once(issuer, keys):
    assert ids(await keys.get("first")) == ["first"]
    await keys.get("first")
    assert issuer.asked.count("/keys") == 1


async def test_many_at_once_fetch_once(issuer, keys):
    await asyncio.gather(*(keys.get("first") for _ in range(20)))
    assert issuer.asked.count("/keys") == 1


async def test_openid_metadata_will_do(issuer, clock):
    def answer(request):
        if request.url.path == "/.well-known/openid-configuration":
            return httpx.Response(200, json=issuer.metadata())
        if request.url.path == "/keys":
            return issuer._answer(request)
        return httpx.Response(404)

    keys = IssuerKeys(issuer.issuer, transport=httpx.MockTransport(answer))
    assert ids(await keys.get("first")) == ["first"]


async def test_unknown_key_id_refreshes(issuer, keys, clock):
    await keys.get("first")
    issuer.rotate("second")
    clock.now += MIN_INTERVAL
    assert ids(await keys.get("second")) == ["first", "second"]


async def test_flood_of_unknown_key_ids_is_not_passed_on(issuer, keys):
    for number in range(50):
        await keys.get(f"unknown-{number}")
    assert issuer.asked.count("/keys") == 1


async def test_token_without_key_id_refreshes_nothing(issuer, keys, clock):
    await keys.get(None)
    clock.now += MIN_INTERVAL
    await keys.get(None)
    assert issuer.asked.count("/keys") == 1


async def test_withdrawn_key_is_gone_after_the_longest_age(issuer, keys, clock):
    await keys.get("first")
    issuer.rotate("second")
    issuer.published.pop(0)
    clock.now += MAX_AGE
    assert ids(await keys.get("first")) == ["second"]


async def test_old_keys_serve_while_the_issuer_is_down(issuer, keys, clock):
    await keys.get("first")
    issuer.down = True
    clock.now += MAX_AGE
    assert ids(await keys.get("first")) == ["first"]


async def test_issuer_that_is_down_is_asked_again_after_a_while(issuer, keys, clock):
    issuer.down = True
    for _ in range(5):
        with pytest.raises(IssuerUnreachable):
            await keys.get("first")
    assert len(issuer.asked) == 1
    issuer.down = False
    clock.now += RETRY_AFTER
    assert ids(await keys.get("first")) == ["first"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example", "jwks_uri": "https://issuer.example/keys"},
        {"issuer": "https://issuer.example"},
        {"issuer": "https://issuer.example", "jwks_uri": 5},
        ["issuer"],
    ],
)
async def test_metadata_that_cannot_be_used_is_no_issuer(issuer, keys, metadata):
    issuer.answers = metadata
    with pytest.raises(IssuerUnreachable):
        await keys.get("first")


async def test_symmetric_keys_are_left_out(issuer, keys):
    issuer.published.append({"kty": "oct", "kid": "shared", "k": "c2VjcmV0"})
    assert ids(await keys.get("first")) == ["first"]


@pytest.mark.parametrize("published", [[], [{"kty": "EC", "kid": "broken"}]])
async def test_set_without_a_usable_key_is_no_issuer(issuer, keys, published):
    issuer.published = published
    with pytest.raises(IssuerUnreachable):
        await keys.get("first")


@pytest.mark.parametrize(
    ("issuer", "by_proxy"),
    [("http://127.0.0.1:8000", False), ("https://issuer.example", True)],
)
async def test_proxy_of_the_environment_is_for_issuers_elsewhere(
    monkeypatch, issuer, by_proxy
):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    async with issuer_client(issuer) as client:
        assert bool(client._mounts) is by_proxy


def test_issuer_of_the_tests_starts_with_one_key():
    assert ids(TestIssuer().published) == ["first"]
