"""What a request says, in either binding."""

from __future__ import annotations

import pytest

from billing_agent.calls import Call, read

RPC = "/a2a/"
MESSAGE = {"contextId": "c", "taskId": "t"}


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("message", [MESSAGE, {"context_id": "c", "task_id": "t"}])
def test_json_rpc_send(method, message):
    params = {"message": message}
    call = read(RPC, {"method": method, "params": params})
    assert call == Call("send", params, "c", "t")
    assert call.message is message


@pytest.mark.parametrize("verb", ["send", "stream"])
def test_http_send(verb):
    params = {"message": MESSAGE}
    call = read(f"/a2a/rest/message:{verb}", params)
    assert call == Call("send", params, "c", "t")


@pytest.mark.parametrize("params", [None, [], "text", {}, {"message": []}])
def test_send_without_a_message(params):
    call = read(RPC, {"method": "SendMessage", "params": params})
    assert call == Call("send", params)
    assert call.message == {}


@pytest.mark.parametrize("value", [5, None, "", {}, True])
def test_ids_that_are_no_text_are_none(value):
    params = {"message": {"contextId": value, "taskId": value}}
    call = read(RPC, {"method": "SendMessage", "params": params})
    assert (call.context_id, call.task_id) == ("", "")


def test_empty_spelling_does_not_hide_the_other():
    params = {"message": {"contextId": "", "context_id": "c"}}
    assert read(RPC, {"method": "SendMessage", "params": params}).context_id == "c"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("GetTask", {"id": "t"}),
        ("CancelTask", {"id": "t"}),
        ("SubscribeToTask", {"id": "t"}),
        ("CreateTaskPushNotificationConfig", {"taskId": "t", "id": "config"}),
        ("GetTaskPushNotificationConfig", {"task_id": "t", "id": "config"}),
    ],
)
def test_json_rpc_task_only(method, params):
    assert read(RPC, {"method": method, "params": params}) == Call(
        "task", params, task_id="t"
    )


def test_json_rpc_list_of_a_context():
    params = {"contextId": "c"}
    call = read(RPC, {"method": "ListTasks", "params": params})
    assert call == Call("other", params, context_id="c")


@pytest.mark.parametrize(
    "document", [None, [], "text", {}, {"method": []}, {"method": "x", "params": []}]
)
def test_json_rpc_that_says_nothing(document):
    call = read(RPC, document)
    assert (call.kind, call.context_id, call.task_id) == ("other", "", "")


@pytest.mark.parametrize(
    "rest", ["t", "t:cancel", "t:subscribe", "t/pushNotificationConfigs/c"]
)
def test_http_task_only(rest):
    assert read(f"/a2a/rest/tasks/{rest}").task_id == "t"


def test_http_task_id_may_have_a_colon():
    assert read("/a2a/rest/tasks/urn:t:cancel").task_id == "urn:t"


@pytest.mark.parametrize(
    ("query", "context_id"),
    [(b"", ""), (b"pageSize=1", ""), (b"contextId=a%20b", "a b")],
)
def test_http_list(query, context_id):
    call = read("/a2a/rest/tasks", None, query)
    assert call == Call("other", context_id=context_id)


@pytest.mark.parametrize(
    "path", ["/", "/acme/a2a/rest/message:send", "/a2a", "/.well-known/agent-card.json"]
)
def test_other_paths_say_nothing(path):
    assert read(path, {"message": MESSAGE}).kind == "other"
