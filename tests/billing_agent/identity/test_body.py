"""Bodies: bounded, strict, exact."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_agent.errors import RequestRefused
from billing_agent.identity.body import Body, ClientGone, decode, encode
from billing_agent.identity.metadata import DEPTH_LIMIT
from billing_agent.refusals import BodyTooLarge, BodyUnreadable
from tests.billing_agent.asgi import GONE, part, receiving

ODD_TEXT = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne"


@pytest.mark.case(5)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_is_kept_as_it_was_sent(ascii_only):
    sent = json.dumps({"text": ODD_TEXT}, ensure_ascii=ascii_only).encode()
    assert decode(encode(decode(sent))) == {"text": ODD_TEXT}


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], min_codepoint=1)))
def test_any_storable_text_is_kept(text):
    assert decode(encode(decode(json.dumps([text, {text: 1}]).encode()))) == [
        text,
        {text: 1},
    ]


@pytest.mark.case(7)
def test_whole_numbers_stay_whole():
    assert encode(decode(b'{"invoice":8812}')) == b'{"invoice":8812}'


@pytest.mark.case(9)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": NaN}',
        b"[Infinity]",
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\x00"}',
        b"1" * 5000,
    ],
)
def test_what_is_not_json_is_unreadable(body):
    with pytest.raises(BodyUnreadable):
        decode(body)


@pytest.mark.case(6)
@pytest.mark.parametrize(
    "body",
    [
        rb'{"text": "a\u0000b"}',
        rb'{"text": "\ud800"}',
        rb'{"text": "\uDFFF\uD800"}',
        rb'{"a\u0000": 1}',
        rb'{"a": [{"\udc00": 1}]}',
        rb'{"id": "\u0000"}',
        rb'"\u0000"',
        rb'["\ud83d", "\ude00"]',
    ],
)
def test_text_no_store_can_hold_is_refused(body):
    with pytest.raises(RequestRefused, match=r"U\+0000") as refused:
        decode(body)
    assert refused.value.code == -32602


@pytest.mark.parametrize(
    "body", [rb'"\\u0000"', rb'"\\ud800"', rb'"\ud83d\ude00"', b'{"a": "u0000"}']
)
def test_text_that_only_looks_like_it_passes(body):
    assert decode(body) == json.loads(body)


def nested(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("depth", [DEPTH_LIMIT + 2, 900, 100_000])
def test_deep_nesting_is_refused(depth):
    with pytest.raises(RequestRefused, match="deep"):
        decode(nested(depth))


def test_many_shallow_containers_pass():
    assert len(decode(b"[" + b",".join([b"{}"] * 500) + b"]")) == 500


def test_nesting_up_to_the_limit_passes():
    assert decode(nested(DEPTH_LIMIT))


def test_number_beyond_what_readers_hold_is_refused():
    with pytest.raises(RequestRefused, match="number"):
        encode(decode(b"[1e999]"))


async def test_body_is_read_in_pieces_and_once():
    body = Body(receiving(part(b'{"a"', True), part(b": 1}")), 100)
    assert await body.read() == b'{"a": 1}'
    assert await body.document() == {"a": 1}


async def test_body_may_have_as_many_bytes_as_the_limit():
    assert await Body(receiving(part(b"x" * 10)), 10).read() == b"x" * 10


async def test_larger_body_is_refused_after_its_last_piece():
    pieces = [part(b"x" * 6, True), part(b"x" * 6, True), part(b"")]
    receive = receiving(*pieces, GONE)
    body = Body(receive, 10)
    with pytest.raises(BodyTooLarge) as refused:
        await body.read()
    assert refused.value.status == 413
    assert await receive() == GONE
    assert await body.request_id() is None


async def test_client_that_leaves_is_noticed():
    with pytest.raises(ClientGone):
        await Body(receiving(part(b"x", True), GONE), 10).read()


@pytest.mark.parametrize("given", [7, "seven", "\ud800"])
async def test_request_id_is_found_in_a_body_not_read_yet(given):
    sent = json.dumps({"id": given}).encode()
    assert await Body(receiving(part(sent)), 100).request_id() == given


@pytest.mark.parametrize(
    "sent", [b"", b"{", b"[]", b"{}", b'{"id": true}', b'{"id": {}}', b'{"id": 1.5}']
)
async def test_request_id_is_none_when_there_is_no_usable_one(sent):
    assert await Body(receiving(part(sent)), 100).request_id() is None


async def test_request_id_is_not_looked_for_in_a_large_body():
    sent = b'{"id": 1, "a": "' + b"x" * 70_000 + b'"}'
    assert await Body(receiving(part(sent)), 100_000).request_id() is None


async def test_replayed_body_comes_once_then_the_servers_messages():
    receive = Body(receiving(GONE), 10).replayed(b"new")
    assert await receive() == part(b"new")
    assert await receive() == GONE
