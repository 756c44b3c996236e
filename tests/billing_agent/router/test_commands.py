"""``manage.py route``: the arithmetic on paper."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from billing_agent.router.routing import scores

REPLICAS = ["replica-a", "replica-b"]


def told(*arguments):
    out = StringIO()
    call_command("route", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("context_id", ["ctx-41", "[bold]請求書"])
def test_every_digest_and_the_winner_are_told(context_id):
    text = told(context_id)
    for digest in scores(context_id, REPLICAS).values():
        assert digest in text
    assert f"{context_id} belongs to replica-" in text


def test_machines_get_json():
    assert json.loads(told("ctx-41", "--json")) == {
        "context_id": "ctx-41",
        "replica": "replica-b",
        "scores": scores("ctx-41", REPLICAS),
    }


def test_an_empty_id_is_refused():
    with pytest.raises(CommandError, match="empty context id") as caught:
        told("")
    assert caught.value.returncode == 2
