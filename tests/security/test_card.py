"""What is read without a token does not depend on the request, and names no secret."""

from __future__ import annotations

import httpx
import pytest

from billing_agent.card import CARD_PATH

pytestmark = pytest.mark.processes

FOREIGN = {
    "Host": "demo.example",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "Forwarded": "host=evil.example",
}


@pytest.mark.case(11)
async def test_card_names_the_public_address_under_any_host(demo):
    async with httpx.AsyncClient() as http:
        cards = [
            await http.get(url + CARD_PATH, headers=headers)
            for url in (demo.router_url, *demo.replicas.values())
            for headers in ({}, FOREIGN)
        ]
    assert {card.status_code for card in cards} == {200}
    assert len({card.content for card in cards}) == 1
    assert len({card.headers["etag"] for card in cards}) == 1
    urls = [each["url"] for each in cards[0].json()["supportedInterfaces"]]
    assert urls == [f"{demo.router_url}/a2a/", f"{demo.router_url}/a2a/rest"]
    assert "evil" not in cards[0].text


@pytest.mark.case(11)
async def test_unchanged_card_is_not_sent_again(demo):
    async with httpx.AsyncClient(base_url=demo.router_url) as http:
        card = await http.get(CARD_PATH)
        known = {"If-None-Match": card.headers["etag"]}
        again = await http.get(CARD_PATH, headers={**FOREIGN, **known})
    assert again.status_code == 304


async def test_everything_else_is_refused_to_foreign_hosts(demo, make_peer):
    for where in ("router", "replica-a"):
        peer = await make_peer(where)
        for path in ("/a2a/rest/tasks", "/demo/ledger"):
            answer = await peer.http.get(path, headers={"Host": "evil.example"})
            assert answer.status_code == 421
            assert answer.json()["error"]["message"] == "this host is not served here"
