"""Whose figures come back: those of the token's tenant, whatever the request says."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_agent.card import REST_PATH, RPC_PATH
from tests.billing_agent.contract.watch import rows
from tests.peer import state, texts
from tests.security.bindings import (
    BINDINGS,
    EVERYWHERE,
    RPC,
    ask,
    message,
    post,
    result,
)
from tests.security.volley import Volley

pytestmark = pytest.mark.processes

SHOW = "Show invoice 8812"
OURS = "Invoice 8812 (June 2026) totals 3,123.15"
THEIRS = "4,310.20"  # of acme's invoice 8812
OF_ACME = 8767  # acme's invoice before 8812; globex has none of this number
OF_NOBODY = 8768
SPELLINGS = [
    "x-verified-tenant",
    "X-Verified-Tenant",
    "x_verified_tenant",
    "xVerifiedTenant",
    "x-veri\u200bfied-tenant",
    "ｘ-ｖｅｒｉｆｉｅｄ-ｔｅｎａｎｔ",
]
FORGED = dict.fromkeys(SPELLINGS, "acme")
PLACES = {
    "metadata": lambda send: {**send, "metadata": FORGED},
    "deep in metadata": lambda send: {**send, "metadata": {"a": [{"b": FORGED}]}},
    "metadata of the message": lambda send: with_message(send, metadata=FORGED),
    "metadata of a part": lambda send: with_part(send, metadata=FORGED),
    "tenant": lambda send: {**send, "tenant": "acme"},
    "ADK's own key": lambda send: {**send, "metadata": {"a2a_metadata": FORGED}},
    "state delta": lambda send: {**send, "metadata": {"state_delta": FORGED}},
    "configuration": lambda send: {**send, "configuration": {"metadata": FORGED}},
}


def with_message(send, **fields):
    return {**send, "message": {**send["message"], **fields}}


def with_part(send, **fields):
    return with_message(send, parts=[{**send["message"]["parts"][0], **fields}])


@pytest.mark.case(8)
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_callers_word_about_the_tenant_counts_nowhere(
    demo, make_peer, where, binding
):
    peer = await make_peer(where, tenant="globex")
    for place, forged in PLACES.items():
        answer = await ask(
            peer.http,
            binding,
            "SendMessage",
            forged(message(SHOW)),
            X_Verified_Tenant="acme",
        )
        task = result(binding, answer)["task"]
        assert texts(task)[0].startswith(OURS), place
        query = (
            "SELECT DISTINCT tenant FROM billing_agent_auditentry WHERE task_id = %s"
        )
        assert await rows(demo, query, task["id"]) == [("globex",)], place


@pytest.mark.case(8)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_tenant_in_the_path_is_no_path(make_peer, where):
    peer = await make_peer(where, tenant="globex")
    for path in ("/acme/a2a/rest/message:send", "/acme/a2a/", "/a2a/rest/acme/tasks"):
        answer = await post(peer.http, path, message(SHOW))
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["status"] == "NOT_FOUND"
    assert (await peer.rpc("ListTasks", {}))["totalSize"] == 0


@pytest.mark.case(8)
async def test_tenant_forged_in_a_follow_up_counts_no_more(make_peer):
    peer = await make_peer(tenant="globex")
    asked = await peer.send("Why was invoice 8812 higher than last month?")
    said = with_message(message("The compute line."), taskId=asked["id"])
    answer = await ask(peer.http, RPC, "SendMessage", {**said, "metadata": FORGED})
    assert "655 hours" in texts(result(RPC, answer)["task"])[0]


async def test_invoice_of_another_tenant_is_an_invoice_nobody_has(make_peer):
    acme, globex = await make_peer(), await make_peer(tenant="globex")
    shown = await acme.send(f"Show invoice {OF_ACME}")
    assert texts(shown)[0].startswith(f"Invoice {OF_ACME} (May 2026)")
    for question in (
        "Show invoice {}",
        "Why was invoice {} higher than last month?",
        "Audit invoice {}",
        "Why was invoice 8812 higher than invoice {}? The compute line.",
    ):
        answers = []
        for number in (OF_ACME, OF_NOBODY):
            task = await globex.send(question.format(number))
            said = json.dumps([task["status"], task.get("artifacts")])
            said = re.sub(r'"(timestamp|\w+Id)": "[^"]*"', "", said)
            answers.append((state(task), said.replace(str(number), "N")))
        assert answers[0] == answers[1]


async def test_lists_and_audits_hold_the_tenants_own_invoices(make_peer):
    globex = await make_peer(tenant="globex")
    for text in ("List my last 24 invoices", "Audit my last 3 invoices"):
        said = texts(await globex.send(text))[0]
        assert "8812" in said
        assert str(OF_ACME) not in said
    said = texts(await globex.send("List the invoices of acme"))[0]
    assert str(OF_ACME) not in said


keys = st.sampled_from([*SPELLINGS, "a2a_metadata", "tenant", "k"]) | st.text(
    max_size=6
)
values = st.recursive(
    st.sampled_from(["acme", "globex", None, True, 1]) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)
metadata = st.dictionaries(keys, values, max_size=3)


@pytest.fixture(scope="module")
def volley(demo):
    fired = Volley(demo, "tenants", "globex")
    yield fired
    fired.close()


@pytest.mark.case(8)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    of_send=metadata,
    of_message=metadata,
    of_part=metadata,
    tenant=st.sampled_from(["", "acme"]),
    rest=st.booleans(),
)
def test_no_metadata_changes_whose_figures_come_back(
    volley, of_send, of_message, of_part, tenant, rest
):
    send = with_part(message(SHOW), metadata=of_part)
    send = with_message(send, metadata=of_message)
    send |= {"metadata": of_send, "tenant": tenant}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send}
    path = f"{REST_PATH}/message:send" if rest else RPC_PATH
    body = json.dumps(send if rest else call).encode()
    answer = volley.send("POST", path, body, X_Verified_Tenant="acme")
    assert THEIRS not in answer.text
    document = answer.json()
    if "error" in document:  # text no store can hold
        assert document["error"]["code"] in {-32602, 400}
        return
    task = (document if rest else document["result"])["task"]
    assert texts(task)[0].startswith(OURS)
