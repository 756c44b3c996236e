"""Requests that are none: an error in JSON each time, and nothing left behind."""

from __future__ import annotations

import http.client
import json
import secrets
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_agent.card import REST_PATH, RPC_PATH
from tests.billing_agent.contract.watch import rows
from tests.peer import token
from tests.security.bindings import (
    BINDINGS,
    EVERYWHERE,
    NO_SUCH_VERSION,
    ask,
    message,
    post,
    refusal,
)
from tests.security.volley import Volley

pytestmark = pytest.mark.processes


def call(method, params, **changed):
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **changed}


def without(document, *names):
    return {key: value for key, value in document.items() if key not in names}


SEND = call("SendMessage", message("hello"))
CASE_9 = {
    "broken JSON": (b'{"jsonrpc": "2.0", "id": 7', -32700, None),
    "no JSON": (b"hello", -32700, None),
    "nothing": (b"", -32700, None),
    "NaN": (b'{"jsonrpc": "2.0", "id": NaN, "method": "GetTask"}', -32700, None),
    "not UTF-8": (b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}', -32700, None),
    "batch": ([SEND, SEND], -32600, None),
    "empty batch": ([], -32600, None),
    "no jsonrpc": (without(SEND, "jsonrpc"), -32600, 7),
    "older jsonrpc": ({**SEND, "jsonrpc": "1.0"}, -32600, 7),
    "object id": ({**SEND, "id": {}}, -32600, None),
    "true id": ({**SEND, "id": True}, -32600, None),
    "no method": (without(SEND, "method"), -32600, 7),
    "number as method": ({**SEND, "method": 7}, -32600, 7),
    "text as params": ({**SEND, "params": "hello"}, -32600, 7),
    "unknown method": (call("Nope", {}), -32601, 7),
    "method of 0.3": (call("message/send", message("hello")), -32601, 7),
    "no message": (call("SendMessage", {}), -32602, 7),
    "text as message": (call("SendMessage", {"message": "hello"}), -32602, 7),
    "no messageId": (call("SendMessage", message(messageId="")), -32602, 7),
    "no role": (call("SendMessage", message(role="")), -32602, 7),
    "unknown role": (call("SendMessage", message(role="ROLE_KING")), -32602, 7),
    "empty parts": (call("SendMessage", message(parts=[])), -32602, 7),
    "part without content": (call("SendMessage", message(parts=[{}])), -32602, 7),
    "null part": (call("SendMessage", message(parts=[None])), -32602, 7),
    "text as part": (call("SendMessage", message(parts=["hello"])), -32602, 7),
    "number as context": (call("SendMessage", message(contextId=41)), -32602, 7),
    "too large a number": (
        call("SendMessage", message(parts=[{"data": 10**400}])),
        -32602,
        7,
    ),
    "text as metadata": (
        call("SendMessage", {**message("hello"), "metadata": "x"}),
        -32602,
        7,
    ),
    "stream without parts": (
        call("SendStreamingMessage", message(parts=[])),
        -32602,
        7,
    ),
    "task of nobody": (call("SendMessage", message(taskId="nobody")), -32001, 7),
    "task of a very long name": (
        call("SendMessage", message(taskId="n" * 100_000)),
        -32001,
        7,
    ),
    "GetTask of nothing": (call("GetTask", {}), -32602, 7),
    "GetTask of null": (call("GetTask", None), -32602, 7),
    "GetTask of a list": (call("GetTask", ["id"]), -32602, 7),
    "negative historyLength": (
        call("GetTask", {"id": "x", "historyLength": -1}),
        -32602,
        7,
    ),
    "half a historyLength": (
        call("GetTask", {"id": "x", "historyLength": 1.5}),
        -32602,
        7,
    ),
    "bad pageToken": (call("ListTasks", {"pageToken": "!"}), -32602, 7),
    "bad pageSize": (call("ListTasks", {"pageSize": 0}), -32602, 7),
    "unknown state": (call("ListTasks", {"status": 77}), -32602, 7),
    "bad time": (call("ListTasks", {"statusTimestampAfter": "soon"}), -32602, 7),
    "subscribe to nothing": (call("SubscribeToTask", {}), -32602, 7),
    "cancel nothing": (call("CancelTask", {}), -32602, 7),
    "nested deeply": (
        b'{"jsonrpc":"2.0","id":7,"params":' + b"[" * 5000 + b"]" * 5000 + b"}",
        -32602,
        None,
    ),
}


STATUS = {-32700: 400, -32602: 400, -32001: 404}
ON_HTTP_JSON = {
    name: (
        body if isinstance(body, bytes) else json.dumps(body["params"]).encode(),
        STATUS[code],
    )
    for name, (body, code, _) in CASE_9.items()
    if isinstance(body, bytes) or (code in STATUS and body["method"] == "SendMessage")
}


class Line:
    """One HTTP connection that is never opened again."""

    def __init__(self, url, bearer):
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        self._http.connect()
        self._http.auto_open = False
        self._headers = {"Authorization": f"Bearer {bearer}", "A2A-Version": "1.0"}

    def post(self, body, path=RPC_PATH, kind="application/json"):
        headers = {**self._headers, "Content-Type": kind}
        self._http.request("POST", path, body, headers)
        answer = self._http.getresponse()
        content = answer.read()
        assert answer.headers["content-type"] == "application/json", content[:200]
        return answer.status, json.loads(content)

    def works(self):
        """Tell whether the next request on this connection is answered."""
        status, answer = self.post(json.dumps(call("ListTasks", {})).encode())
        return status == 200 and answer["result"]["tasks"] == []

    def close(self):
        self._http.close()


@pytest.fixture
async def line(demo):
    """Return a factory of connections, as a fresh subject."""
    lines = []

    async def make(where):
        subject = f"bad-{secrets.token_hex(4)}"
        url = demo.router_url if where == "router" else demo.replicas[where]
        lines.append(Line(url, await token(demo, subject)))
        return lines[-1], subject

    yield make
    for each in lines:
        each.close()


@pytest.mark.case(9)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_every_mistake_has_its_code_and_the_connection_goes_on(demo, line, where):
    connection, subject = await line(where)
    for name, (body, code, request_id) in CASE_9.items():
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = connection.post(sent)
        assert status == 200, name
        assert answer["jsonrpc"] == "2.0", name
        assert (answer["error"]["code"], answer["id"]) == (code, request_id), name
        assert isinstance(answer["error"]["message"], str), name
        assert connection.works(), name
    for table in ("a2atask", "a2asend"):
        query = f"SELECT count(*) FROM billing_agent_{table} WHERE owner LIKE %s"  # noqa: S608
        assert await rows(demo, query, f"%{subject}%") == [(0,)]


@pytest.mark.case(9)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_mistakes_on_http_json_have_a_status_and_a_json_body(line, where):
    connection, _ = await line(where)
    for name, (sent, status) in ON_HTTP_JSON.items():
        for verb in ("send", "stream"):
            got, answer = connection.post(sent, f"{REST_PATH}/message:{verb}")
            assert got == status == answer["error"]["code"], name
            assert connection.works(), name


@pytest.mark.case(9)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_other_content_types_are_refused_as_json(line, where):
    connection, _ = await line(where)
    body = json.dumps(SEND).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "text/html"):
        status, answer = connection.post(body, kind=kind)
        assert (status, answer["error"]["code"]) == (200, -32005)
        assert connection.works()


@pytest.mark.case(10)
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_other_versions_of_the_protocol_are_named_as_such(
    make_peer, where, binding
):
    peer = await make_peer(where)
    for version in ("", "0.3", "2.0", "abc"):
        for method in ("SendMessage", "GetTask", "SendStreamingMessage"):
            params = {"id": "x"} if method == "GetTask" else message("hello")
            answer = await ask(peer.http, binding, method, params, A2A_Version=version)
            assert refusal(binding, answer) == NO_SUCH_VERSION[binding]
    del peer.http.headers["A2A-Version"]
    answer = await ask(peer.http, binding, "SendMessage", message("hello"))
    assert refusal(binding, answer) == NO_SUCH_VERSION[binding]
    peer.http.headers["A2A-Version"] = "1.0"
    assert (await peer.rpc("ListTasks", {}))["totalSize"] == 0


@pytest.mark.case(9)
async def test_path_that_is_not_served_is_an_error_in_json(make_peer):
    for where in EVERYWHERE:
        peer = await make_peer(where)
        for path in ("/nothing", "/a2a", f"{REST_PATH}/nothing", "/runs/", "/"):
            answer = await post(peer.http, path, message("hello"))
            assert answer.status_code == 404, path
            assert answer.json()["error"]["code"] == 404
        answer = await peer.http.get(RPC_PATH)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert answer.json()["error"]["code"] == -32601


# Thousands of random bodies

FIELDS = ["message", "parts", "text", "data", "raw", "contextId", "taskId", "id"]
FIELDS += ["metadata", "configuration", "historyLength", "pageSize", "tenant", "role"]
METHODS = ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask"]
METHODS += ["SubscribeToTask", "CreateTaskPushNotificationConfig", "message/send", ""]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=6), inner)
    ),
    max_leaves=8,
)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | trees,
        "id": st.integers() | st.text(max_size=4) | trees,
        "method": st.sampled_from(METHODS) | trees,
        "params": trees,
    },
)


@st.composite
def broken_sends(draw):
    """Return a send in which one thing that it needs is missing or something else."""
    said = message("hello", contextId="ctx-41")["message"]
    name = draw(st.sampled_from(["messageId", "role", "parts"]))
    bad = {
        "messageId": st.just("") | st.integers() | st.lists(leaves),
        "role": st.just("ROLE_UNSPECIFIED") | st.just("") | st.just([]),
        "parts": st.just([]) | st.just({}) | st.text() | st.just([{}]) | st.just([[]]),
    }
    if draw(st.booleans()):
        del said[name]
    else:
        said[name] = draw(bad[name])
    said["metadata"] = draw(st.dictionaries(st.text(max_size=6), trees, max_size=2))
    return call(draw(st.sampled_from(METHODS[:2])), {"message": said})


documents = st.one_of(trees, envelopes, envelopes, broken_sends())
bodies = st.binary(max_size=40) | documents.map(json.dumps).map(str.encode)
volleys = st.lists(bodies, min_size=20, max_size=20)
thorough = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def volley(demo):
    fired = Volley(demo, "fuzz", "acme")
    yield fired
    fired.close()


def read(answer):
    """Return the JSON of an answer that is no failure of the server."""
    assert answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("application/"), answer.text
    return answer.json()


def lists_tasks(body):
    """Tell whether a body is a valid call by chance; only ListTasks has no needs."""
    try:
        return json.loads(body)["method"] == "ListTasks"
    except (ValueError, KeyError, TypeError):
        return False


@pytest.mark.case(9)
@thorough
@given(sent=volleys)
def test_random_bodies_are_answered_with_a_json_rpc_error(volley, sent):
    for body in sent:
        answer = read(volley.send("POST", RPC_PATH, body))
        assert answer["jsonrpc"] == "2.0"
        assert set(answer) <= {"jsonrpc", "id", "error", "result"}
        if not lists_tasks(body):
            assert isinstance(answer["error"]["code"], int)
            assert isinstance(answer["error"]["message"], str)
    assert volley.left_behind() == []


def test_what_a_request_leaves_behind_would_be_seen(demo):
    """The checks above would be worth nothing if they could not fail."""
    fired = Volley(demo, "control", "acme")
    read(fired.send("POST", RPC_PATH, json.dumps(SEND).encode()))
    kinds = {kind for kind, _ in fired.left_behind()}
    fired.close()
    assert kinds == {"task", "send", "session", "audit"}


verbs = st.sampled_from(["GET", "POST", "PUT", "DELETE"])
paths = st.sampled_from(["/message:send", "/message:stream", "/tasks", "/tasks/{}"])
paths |= st.sampled_from(["/tasks/{}:cancel", "/tasks/{}:subscribe", "/{}"])
queries = st.dictionaries(
    st.sampled_from(["pageSize", "historyLength", "status", "pageToken", "contextId"]),
    st.text(max_size=6),
    max_size=2,
)
rest_requests = st.tuples(verbs, paths, st.text(max_size=6), queries, bodies)


@pytest.mark.case(9)
@settings(thorough, max_examples=30)
@given(sent=st.lists(rest_requests, min_size=20, max_size=20))
def test_random_requests_on_http_json_are_answered_in_json(volley, sent):
    for verb, path, word, query, body in sent:
        named = REST_PATH + path.format(quote(word, safe=""))
        asked = "&".join(f"{key}={quote(value)}" for key, value in query.items())
        answer = volley.send(verb, f"{named}?{asked}", body if verb != "GET" else b"")
        document = read(answer)
        if answer.status_code >= 400:
            assert document["error"]["code"] == answer.status_code
        else:
            assert verb == "GET"
    assert volley.left_behind() == []
