"""The same request on either A2A binding, answered with the raw HTTP response."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx

from billing_agent.card import REST_PATH, RPC_PATH

RPC = "JSON-RPC"
REST = "HTTP+JSON"
BINDINGS = (RPC, REST)
EVERYWHERE = ("router", "replica-a", "replica-b")

# A2A 1.0, section 5.4: the code of JSON-RPC and the status of HTTP+JSON.
NOT_FOUND = {RPC: -32001, REST: "TASK_NOT_FOUND"}
INVALID = {RPC: -32602, REST: "INVALID_PARAMS"}
NO_PUSH = {RPC: -32003, REST: "PUSH_NOTIFICATION_NOT_SUPPORTED"}
NO_SUCH_VERSION = {RPC: -32009, REST: "VERSION_NOT_SUPPORTED"}

_VERBS = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("GET", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": (
        "POST",
        "/tasks/{taskId}/pushNotificationConfigs",
    ),
}


async def ask(
    http: httpx.AsyncClient,
    binding: str,
    method: str,
    params: dict[str, Any],
    **headers: str,
) -> httpx.Response:
    """Call a method; headers are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if binding == RPC:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await post(http, RPC_PATH, call, **named)
    verb, path = _VERBS[method]
    address = REST_PATH + path.format_map(params)
    if verb == "POST":
        return await post(http, address, params, **named)
    query = {key: value for key, value in params.items() if f"{{{key}}}" not in path}
    return await http.get(address, params=query, headers=named)


async def post(
    http: httpx.AsyncClient, path: str, document: Any, **headers: str
) -> httpx.Response:
    """Post a document as JSON, also one that is no text (a lone surrogate, say)."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    named = {"Content-Type": "application/json", **headers}
    return await http.post(path, content=body, headers=named)


def message(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """Return the parameters of a send."""
    return {
        "message": {
            "messageId": secrets.token_hex(8),
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            **fields,
        }
    }


def refusal(binding: str, answer: httpx.Response) -> Any:
    """Return what identifies an error: its code, or the reason of HTTP+JSON.

    Asserts that it is an error as the binding writes it.
    """
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert isinstance(error["message"], str)
    if binding == RPC:
        assert answer.json()["jsonrpc"] == "2.0"
        assert "result" not in answer.json()
        return error["code"]
    assert answer.status_code == error["code"] >= 400
    return error["details"][0]["reason"]


def result(binding: str, answer: httpx.Response) -> Any:
    """Return the result of a call that was not refused."""
    document = answer.json()
    assert "error" not in document, document
    return document["result"] if binding == RPC else document
