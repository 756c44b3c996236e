"""No request of a caller makes the agent ask an address of the caller's choice."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.peer import state
from tests.security.bindings import (
    BINDINGS,
    EVERYWHERE,
    NO_PUSH,
    RPC,
    ask,
    message,
    refusal,
    result,
)

pytestmark = pytest.mark.processes

LINK_LOCAL = "http://169.254.169.254/latest/meta-data/"


@pytest.fixture
def trap():
    """A listener on a loopback address, and who has come."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def watch():
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return
                came.append(address)
                connection.close()

        watching = threading.Thread(target=watch)
        watching.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook", came
        listener.shutdown(socket.SHUT_RDWR)
    watching.join()


@pytest.mark.case(20)
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_push_is_refused_and_nobody_called(make_peer, trap, where, binding):
    url, came = trap
    peer = await make_peer(where)
    parked = await peer.send("Why was invoice 8812 higher than last month?")
    for address in (url, LINK_LOCAL, "file:///etc/passwd", "http://[::1]/"):
        for task_id in (parked["id"], "unknown"):
            params = {"taskId": task_id, "url": address}
            method = "CreateTaskPushNotificationConfig"
            answer = await ask(peer.http, binding, method, params)
            assert refusal(binding, answer) == NO_PUSH[binding]
    await peer.cancel(parked["id"])
    assert came == []


@pytest.mark.case(20)
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_push_is_refused_by_its_other_methods_too(make_peer, verb):
    peer = await make_peer()
    path = "/a2a/rest/tasks/unknown/pushNotificationConfigs/one"
    answer = await peer.http.request(verb, path)
    assert answer.json()["error"]["details"][0]["reason"] == NO_PUSH["HTTP+JSON"]
    for method in ("Get", "Delete"):
        method += "TaskPushNotificationConfig"
        answer = await ask(peer.http, RPC, method, {"taskId": "unknown", "id": "one"})
        assert refusal(RPC, answer) == NO_PUSH[RPC]


@pytest.mark.case(20)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_push_asked_for_in_a_send_is_not_made(make_peer, trap, binding):
    url, came = trap
    peer = await make_peer()
    asked = {"taskPushNotificationConfig": {"url": url}}
    params = {**message("hello"), "configuration": asked}
    answer = await ask(peer.http, binding, "SendMessage", params)
    assert state(result(binding, answer)["task"]) == "COMPLETED"
    assert came == []


@pytest.mark.parametrize("binding", BINDINGS)
async def test_file_at_an_address_is_not_fetched(make_peer, trap, binding):
    url, came = trap
    peer = await make_peer()
    parts = [{"text": "Show invoice 8812"}, {"url": url, "mediaType": "text/plain"}]
    answer = await ask(peer.http, binding, "SendMessage", message(parts=parts))
    assert state(result(binding, answer)["task"]) == "COMPLETED"
    assert came == []
