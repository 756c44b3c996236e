"""What the router reads out of a request."""

from __future__ import annotations

import json
import uuid

import pytest

from billing_agent.errors import RequestRefused
from billing_agent.facts import Origin
from billing_agent.identity.tokens import Caller
from billing_agent.router.errand import errand_of

RPC = "/a2a/"


async def known_tasks(subject, task_id):
    return {("someone", "t"): "ctx-of-t"}.get((subject, task_id), "")


async def errand(path=RPC, document=None, subject="someone", query=b"", **headers):
    scope = {
        "type": "http",
        "path": path,
        "query_string": query,
        "headers": [
            (name.replace("_", "-").encode(), value.encode())
            for name, value in headers.items()
        ],
        "a2a.body": document,
    }
    if subject:
        scope["caller"] = Caller(subject, "acme", "workshop")
    body = json.dumps(document).encode() if document else b""
    return await errand_of(scope, body, known_tasks)


def sending(**message):
    params = {"message": {"messageId": "m", **message}}
    return {"id": 1, "method": "SendMessage", "params": params}


@pytest.mark.parametrize("key", ["contextId", "context_id"])
async def test_context_of_a_send_is_in_its_message(key):
    document = sending(**{key: "ctx-41"})
    found = await errand(document=document, x_a2a_context="other")
    assert found.conversation == ("someone", "ctx-41")
    assert json.loads(found.body) == document


@pytest.mark.parametrize("given", [{}, {"contextId": ""}, {"context_id": ""}])
async def test_new_conversation_gets_a_context(given):
    found = await errand(document=sending(**given), x_a2a_context="other")
    message = json.loads(found.body)["params"]["message"]
    assert message == {"messageId": "m", "contextId": found.conversation.context_id}
    assert uuid.UUID(message["contextId"])


async def test_new_conversation_of_the_other_binding_gets_a_context():
    params = {"message": {"messageId": "請求書"}, "metadata": {"k": "v"}}
    found = await errand("/a2a/rest/message:send", params)
    context_id = found.conversation.context_id
    assert json.loads(found.body) == {
        "message": {"messageId": "請求書", "contextId": context_id},
        "metadata": {"k": "v"},
    }


@pytest.mark.case(9)
@pytest.mark.parametrize("key", ["contextId", "context_id"])
@pytest.mark.parametrize("given", [41, 0, False, [], {}])
async def test_context_that_is_no_text_is_left_for_the_replica_to_refuse(key, given):
    document = sending(**{key: given})
    found = await errand(document=document)
    assert json.loads(found.body) == document


async def test_two_new_conversations_are_two():
    first, second = await errand(document=sending()), await errand(document=sending())
    assert first.conversation != second.conversation


async def test_follow_up_that_names_its_task_is_not_changed():
    document = sending(taskId="t")
    found = await errand(document=document)
    assert found.conversation == ("someone", "ctx-of-t")
    assert json.loads(found.body) == document
    assert found.origin == Origin("router", "someone", "ctx-of-t", "t")


async def test_task_is_looked_up_for_its_owner_only():
    found = await errand(document=sending(taskId="t"), subject="someone else")
    assert found.conversation == ("someone else", "")


async def test_client_may_state_the_context_of_a_task():
    found = await errand("/a2a/rest/tasks/t", x_a2a_context="ctx-41")
    assert found.conversation == ("someone", "ctx-41")


async def test_task_alone_is_looked_up():
    found = await errand("/a2a/rest/tasks/t:cancel")
    assert (found.call.kind, found.conversation.context_id) == ("task", "ctx-of-t")


async def test_list_of_a_context_belongs_to_it():
    found = await errand("/a2a/rest/tasks", query=b"contextId=ctx-41")
    assert found.conversation.context_id == "ctx-41"


@pytest.mark.parametrize("document", [None, [], "text", {"method": "SendMessage"}])
async def test_request_that_names_nothing_is_about_nothing(document):
    found = await errand(document=document)
    assert found.conversation == ("someone", "")


async def test_message_that_is_none_gets_no_context():
    document = {"method": "SendMessage", "params": {"message": "text"}}
    found = await errand(document=document)
    assert json.loads(found.body) == document


async def test_open_path_has_no_subject():
    found = await errand("/.well-known/agent-card.json", subject="")
    assert found.conversation == ("", "")


@pytest.mark.parametrize(
    ("wish", "affinity"), [("on", True), ("off", False), (" OFF", False), ("", True)]
)
async def test_affinity_is_the_callers_wish(wish, affinity):
    assert (await errand(x_affinity=wish)).affinity is affinity


async def test_affinity_is_on_by_default():
    assert (await errand()).affinity


async def test_unknown_wish_is_refused():
    with pytest.raises(RequestRefused, match="X-Affinity"):
        await errand(x_affinity="sometimes")
