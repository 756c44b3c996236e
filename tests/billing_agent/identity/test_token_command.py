"""``manage.py token``: from the issuer to standard output."""

from __future__ import annotations

from io import StringIO
from urllib.parse import parse_qs

import httpx
import pytest
from django.core.management import CommandError, call_command

from billing_agent.identity import clients
from billing_agent.management.commands import token as command


class Endpoint:
    """An issuer's token endpoint that answers as the test says."""

    def __init__(self):
        self.answer = httpx.Response(200, json={"access_token": "the.token"})
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        if request.method == "POST":
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer
        issuer = f"{request.url.scheme}://{request.url.netloc.decode()}"
        token_endpoint = issuer + "/somewhere"
        metadata = {"issuer": issuer, "token_endpoint": token_endpoint}
        return httpx.Response(200, json=metadata)


@pytest.fixture
def endpoint(monkeypatch):
    endpoint = Endpoint()

    def client(issuer):
        return httpx.AsyncClient(transport=httpx.MockTransport(endpoint))

    monkeypatch.setattr(command, "issuer_client", client)
    return endpoint


def told(*arguments):
    out = StringIO()
    call_command("token", *arguments, stdout=out)
    return out.getvalue()


def test_token_is_alone_on_its_line(endpoint):
    assert told("--tenant", "acme") == "the.token\n"


def test_it_is_asked_for_as_the_workshop_client(endpoint):
    told("--tenant", "acme", "--subject", "ada")
    request = endpoint.asked[-1]
    assert request.url.path == "/somewhere"
    assert parse_qs(request.content.decode()) == {
        "grant_type": ["client_credentials"],
        "tenant": ["acme"],
        "subject": ["ada"],
    }
    expected = httpx.BasicAuth(clients.WORKSHOP, clients.workshop_secret())
    assert request.headers["authorization"] == expected._auth_header


def test_refusal_is_told_in_one_line(endpoint):
    refusal = {"error": "invalid_request", "error_description": "no such tenant"}
    endpoint.answer = httpx.Response(400, json=refusal)
    with pytest.raises(CommandError, match="no such tenant") as failed:
        told("--tenant", "umbrella")
    assert failed.value.returncode == 2


@pytest.mark.parametrize(
    "answer", [httpx.ConnectError("down"), httpx.Response(502, text="<html>")]
)
def test_issuer_out_of_reach_is_told_in_one_line(endpoint, answer):
    endpoint.answer = answer
    with pytest.raises(CommandError, match="cannot be reached") as failed:
        told("--tenant", "acme")
    assert failed.value.returncode == 2
