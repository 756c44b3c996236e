"""What the dispatchers answer when they cannot read a request, or break."""

from __future__ import annotations

import json

import httpx
import pytest
from a2a.server.request_handlers import RequestHandler
from a2a.types import Task

from billing_agent.card import REST_PATH, RPC_PATH
from billing_agent.dispatch import Routes, rest_routes, rpc_route, unreadable

SECRET = "postgresql://billing:pw@10.0.0.7/billing"
VERSION = {"A2A-Version": "1.0"}


class Breaking(RequestHandler):
    """Breaks without hiding why; a stream breaks after its first event."""

    async def _break(self, params, context):
        raise RuntimeError(SECRET)

    async def _break_later(self, params, context):
        yield Task(id="t")
        raise RuntimeError(SECRET)

    on_get_task = on_list_tasks = on_cancel_task = on_message_send = _break
    on_create_task_push_notification_config = _break
    on_get_task_push_notification_config = _break
    on_list_task_push_notification_configs = _break
    on_delete_task_push_notification_config = _break
    on_get_extended_agent_card = _break
    on_message_send_stream = on_subscribe_to_task = _break_later


@pytest.fixture
async def client():
    handler = Breaking()
    app = Routes([rpc_route(handler), *rest_routes(handler)])
    transport = httpx.ASGITransport(app)
    base = "http://agent.example"
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        client.headers.update(VERSION)
        yield client


async def rpc(client, method, params):
    call = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return await client.post(RPC_PATH, json=call)


def logged(caplog, text):
    """Tell whether a traceback in the log carries what the answer does not."""
    return any(
        record.exc_info and text in str(record.exc_info[1]) for record in caplog.records
    )


@pytest.mark.statement(24)
@pytest.mark.parametrize("method", ["GetTask", "ListTasks", "CancelTask"])
async def test_exception_is_an_error_id_on_json_rpc(client, caplog, method):
    answer = await rpc(client, method, {"id": "t"})
    assert answer.json()["error"]["code"] == -32603
    assert "error_id: " in answer.json()["error"]["message"]
    assert SECRET not in answer.text
    assert logged(caplog, SECRET)


@pytest.mark.statement(24)
@pytest.mark.parametrize("path", ["/tasks", "/tasks/t", "/extendedAgentCard"])
async def test_exception_is_an_error_id_on_http_json(client, caplog, path):
    answer = await client.get(REST_PATH + path)
    assert answer.status_code == 500
    assert "error_id: " in answer.json()["error"]["message"]
    assert SECRET not in answer.text
    assert logged(caplog, SECRET)


@pytest.mark.statement(24)
async def test_stream_that_breaks_ends_with_an_error_id(client, caplog):
    answer = await rpc(client, "SubscribeToTask", {"id": "t"})
    assert "error_id: " in answer.text
    assert SECRET not in answer.text
    assert logged(caplog, SECRET)
    answer = await client.get(f"{REST_PATH}/tasks/t:subscribe")
    assert "event: error" in answer.text
    assert SECRET not in answer.text


@pytest.mark.case(9)
@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"message": {"parts": "x"}}, "message.parts"),
        ({"message": {"extensions": [1]}}, "message.extensions"),
        ({"message": {"contextId": {}}}, "message.contextId"),
        ({"message": {"parts": [{"data": 10**400}]}}, "the request"),
    ],
)
async def test_what_protobuf_cannot_read_is_named_without_its_words(
    client, params, named
):
    answer = await rpc(client, "SendMessage", params)
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (-32602, f"{named} cannot be read")
    assert answer.json()["id"] == 7
    answer = await client.post(f"{REST_PATH}/message:send", json=params)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"{named} cannot be read"
    for quoted in ("expected", "Error", "object", "Failed"):
        assert quoted not in json.dumps(answer.json()["error"]["message"])


@pytest.mark.case(9)
async def test_query_that_cannot_be_read_is_the_callers_mistake(client):
    answer = await client.get(f"{REST_PATH}/tasks", params={"pageSize": "many"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "pageSize cannot be read"


@pytest.mark.case(9)
@pytest.mark.parametrize("body", [[], 1, "x", None, {"id": 7}, {"jsonrpc": "2.0"}])
async def test_what_is_no_json_rpc_is_said_without_the_parsers_words(client, body):
    answer = await client.post(RPC_PATH, content=json.dumps(body))
    error = answer.json()["error"]
    assert error["code"] == -32600
    assert error["message"] == "not a request of JSON-RPC 2.0"
    assert "parseError" not in answer.text


async def test_broken_json_is_said_without_the_parsers_words(client):
    """The filter refuses it before; without one it is no different."""
    answer = await client.post(RPC_PATH, content="{")
    assert answer.json()["error"]["code"] == -32700
    assert "line 1" not in answer.text


def test_value_that_looks_like_a_path_is_not_taken_for_one():
    reason = "Failed to parse id field: 'Failed to parse evil field: x' is no id."
    assert unreadable(reason).message == "id cannot be read"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", RPC_PATH, 405),
        ("PUT", f"{REST_PATH}/tasks", 405),
        ("GET", f"{REST_PATH}/nothing", 404),
        ("POST", f"/acme{REST_PATH}/message:send", 404),
        ("GET", "/a2a", 404),
    ],
)
async def test_what_no_route_takes_is_an_error_in_json(client, method, path, status):
    answer = await client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert "error" in answer.json()
    assert ("allow" in answer.headers) == (status == 405)
