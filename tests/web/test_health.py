"""Liveness and readiness of the web process."""

from __future__ import annotations

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import OperationalError, connection

from web.health import Liveness


def http(path):
    return {"type": "http", "method": "GET", "path": path, "headers": []}


async def unreachable(scope, receive, send):
    raise AssertionError(f"{scope['path']} went on to the application")


async def status_of(application, path):
    talk = ApplicationCommunicator(application, http(path))
    start = await talk.receive_output()
    await talk.receive_output()
    await talk.wait()
    return start["status"]


async def test_liveness_is_answered_before_django():
    assert await status_of(Liveness(unreachable), "/healthz") == 200


@pytest.mark.parametrize("path", ["/", "/healthz/more", "/readyz"])
async def test_anything_else_is_passed_on(path):
    with pytest.raises(AssertionError, match="went on"):
        await status_of(Liveness(unreachable), path)


async def test_other_protocols_are_passed_on():
    talk = ApplicationCommunicator(
        Liveness(unreachable), {"type": "websocket", "path": "/healthz"}
    )
    with pytest.raises(AssertionError, match="went on"):
        await talk.wait()


@pytest.mark.django_db
def test_readiness_asks_the_database(client):
    assert client.get("/readyz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readiness_says_when_the_database_is_away(client, monkeypatch):
    def refuse():
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "cursor", refuse)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "no database"}
