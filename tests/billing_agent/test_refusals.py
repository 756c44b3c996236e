"""Errors as they look from outside, and nothing but them."""

from __future__ import annotations

import logging

import httpx
import pytest

from billing_agent import refusals
from billing_agent.errors import CallerForbidden, RequestRefused, TokenRefused
from billing_agent.refusals import never_html
from tests.billing_agent.asgi import client, say

EVERY_ERROR = [
    CallerForbidden("no"),
    RequestRefused("no"),
    TokenRefused("no"),
    refusals.BodyTooLarge(1),
    refusals.BodyUnreadable(),
    refusals.ContentTypeRefused(),
    refusals.HostRefused(),
    refusals.Later("no"),
    refusals.RateExceeded(0.2),
    refusals.TokenMissing(),
    refusals.Unexpected(),
]


def answering(error, request_id=None):
    async def app(scope, receive, send):
        await refusals.refuse(scope, send, error, request_id)

    return app


async def answer_of(app, path):
    async with client(app) as http:
        return await http.post(path)


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
async def test_shape_on_the_json_rpc_binding(error):
    answer = await answer_of(answering(error, "id"), "/a2a/")
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": "id",
        "error": {"code": error.code, "message": error.message},
    }
    assert answer.status_code == (200 if error.status == 400 else error.status)
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
async def test_shape_everywhere_else(error):
    answer = await answer_of(answering(error), "/a2a/rest/message:send")
    assert answer.status_code == answer.json()["error"]["code"] == error.status
    assert answer.json()["error"]["message"] == error.message
    assert set(answer.json()["error"]) == {"code", "status", "message", "details"}


async def test_seconds_to_wait_are_whole_and_at_least_one():
    answer = await answer_of(answering(refusals.RateExceeded(0.2)), "/a2a/")
    assert answer.headers["retry-after"] == "1"
    answer = await answer_of(answering(refusals.Later("no", 2.1)), "/a2a/")
    assert answer.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"id": 1}, 1),
        ({"id": "a"}, "a"),
        ({"id": True}, None),
        ({"id": [1]}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_id_of_a_request(document, found):
    assert refusals.id_of(document) == found


def guarded(app):
    async def guard(scope, receive, send):
        await never_html(app, scope, receive, send)

    return guard


async def test_error_before_the_answer_is_json_and_raised_on():
    async def app(scope, receive, send):
        raise LookupError("secret")

    async with client(guarded(app)) as http:
        answer = await http.get("/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    transport = httpx.ASGITransport(guarded(app))
    async with httpx.AsyncClient(transport=transport) as http:
        with pytest.raises(LookupError):
            await http.get("http://host/")


async def broken_off(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise LookupError


async def broken_after(scope, receive, send):
    await say(send, 200, "whole")
    raise LookupError


@pytest.mark.parametrize(
    ("app", "text"), [(broken_off, "half"), (broken_after, '"whole"')]
)
async def test_error_after_it_began_ends_the_answer_and_is_logged(app, text, caplog):
    async with client(guarded(app)) as http:
        answer = await http.get("/path")
    assert (answer.status_code, answer.text) == (200, text)
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "/path" in record.getMessage()
    assert record.exc_info


async def test_answer_is_ended_once():
    sent = []

    async def note(message):
        sent.append(message)

    await never_html(broken_after, {"type": "http", "path": "/"}, None, note)
    assert len(sent) == 2
