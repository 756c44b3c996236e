"""The identity filter in front of an application that remembers what reached it."""

from __future__ import annotations

import json
import logging

import pytest
from a2a.types import SendMessageRequest
from google.protobuf.json_format import Parse
from hypothesis import given
from hypothesis import strategies as st

from billing_agent import facts
from billing_agent.identity.filter import IdentityFilter
from billing_agent.identity.limits import RateLimiter
from billing_agent.identity.metadata import TENANT_KEY
from billing_agent.identity.tokens import Caller
from tests.billing_agent.asgi import GONE, Recorder, client, receiving
from tests.billing_agent.identity.issuers import TestIssuer, verifier_of
from tests.billing_agent.identity.test_body import ODD_TEXT
from tests.billing_agent.identity.test_metadata import SPELLINGS, keys, trees

RPC = "/a2a/"
REST = "/a2a/rest/message:send"
STREAM = "/a2a/rest/message:stream"
CARD = "/.well-known/agent-card.json"
dictionaries = st.dictionaries(keys, trees, max_size=4)


class Door:
    """A filter, what lies behind it, and a client with a token."""

    def __init__(self, issuer, verifier, **options):
        self.issuer = issuer
        self.app = Recorder()
        options = {"hosts": ["127.0.0.1"], "body_limit": 10_000} | options
        self.filter = IdentityFilter(
            options.pop("app", self.app), verifier=verifier, part="replica-b", **options
        )
        self.token = issuer.token(tenant="globex")

    def client(self, **headers):
        return client(
            self.filter, **{"Authorization": f"Bearer {self.token}"} | headers
        )

    async def post(self, path, document, **headers):
        content = document
        if not isinstance(document, bytes):
            content = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"} | headers
        async with self.client() as http:
            return await http.post(path, content=content, headers=headers)

    async def get(self, path, **headers):
        async with self.client(**headers) as http:
            return await http.get(path)


@pytest.fixture
def make_door(issuer, verifier):
    return lambda **options: Door(issuer, verifier, **options)


@pytest.fixture
def door(make_door):
    return make_door()


@pytest.fixture
def heard():
    """The facts announced, each with its source."""
    found = []

    async def hear(fact, source, **_):
        found.append((fact, source))

    facts.announced.connect(hear)
    yield found
    facts.announced.disconnect(hear)


def send(method="SendMessage", **params):
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    params = {"message": message, **params}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def rpc_error(answer):
    document = answer.json()
    assert document["jsonrpc"] == "2.0"
    return document["id"], document["error"]["code"]


# Who calls


async def test_caller_is_in_the_scope(door):
    await door.get("/a2a/rest/tasks")
    scope = door.app.scope
    assert scope["caller"] == Caller("someone", "globex", "workshop")
    assert scope["user"].is_authenticated
    assert scope["user"].display_name == "someone"
    assert scope["auth"].scopes == ["authenticated"]


async def test_token_goes_no_further(door):
    await door.get("/a2a/rest/tasks")
    assert "authorization" not in door.app.headers


async def test_router_gets_the_token_to_pass_on(make_door):
    door = make_door(pass_token=True)
    await door.get("/a2a/rest/tasks")
    assert door.app.headers["authorization"] == f"Bearer {door.token}"


async def test_server_owned_headers_are_taken_out(door):
    headers = {"X-Verified-Tenant": "acme", "x_verified_tenant": "acme", "X-Kept": "1"}
    await door.get("/a2a/rest/tasks", **headers)
    assert door.app.headers["x-kept"] == "1"
    assert not any("verified" in name for name in door.app.headers)


@pytest.mark.parametrize(
    ("authorization", "challenge"),
    [
        (None, 'Bearer realm="billing-agent"'),
        ("Bearer nonsense", "invalid_token"),
        ("Bearer", "invalid_token"),
        ("Basic dTpw", "invalid_token"),
        ("nonsense", "invalid_token"),
    ],
)
async def test_request_without_a_good_token_stops_here(door, authorization, challenge):
    async with client(door.filter) as http:
        headers = {"Content-Type": "application/json"}
        if authorization:
            headers["Authorization"] = authorization
        answer = await http.post(RPC, json=send(), headers=headers)
    assert answer.status_code == 401
    assert challenge in answer.headers["www-authenticate"]
    assert ("error=" in answer.headers["www-authenticate"]) == bool(authorization)
    assert rpc_error(answer) == (7, -32000)
    assert door.app.scopes == []


async def test_two_tokens_are_one_too_many(door):
    headers = [("Authorization", f"Bearer {door.token}")] * 2
    async with client(door.filter) as http:
        answer = await http.get("/a2a/rest/tasks", headers=headers)
    assert answer.status_code == 401


async def test_scheme_is_written_in_any_case(door):
    answer = await door.get("/a2a/rest/tasks", Authorization=f"bEARER  {door.token}")
    assert answer.status_code == 200


async def test_token_without_a_tenant_is_forbidden(door, issuer):
    door.token = issuer.token(tenant=None)
    answer = await door.post(RPC, send())
    assert answer.status_code == 403
    assert "insufficient_scope" in answer.headers["www-authenticate"]
    assert rpc_error(answer) == (7, -32000)


async def test_issuer_out_of_reach_is_said_so(door, issuer):
    issuer.down = True
    answer = await door.post(RPC, send())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert rpc_error(answer) == (7, -32000)


async def test_refusal_on_the_other_binding_is_as_google_rpc_writes_it(door):
    async with client(door.filter) as http:
        answer = await http.post(REST, json={})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (401, 401)
    assert error["status"] == "UNAUTHENTICATED"
    assert error["details"][0]["reason"] == "UNAUTHENTICATED"


@pytest.mark.case(11)
@pytest.mark.parametrize("path", [CARD, "/healthz", "/readyz"])
async def test_open_paths_need_no_token_and_no_host(door, path):
    async with client(door.filter) as http:
        answer = await http.get(path, headers={"Host": "demo.example"})
    assert answer.status_code == 200
    assert "caller" not in door.app.scope


async def test_open_path_is_only_open_to_readers(door):
    async with client(door.filter) as http:
        answer = await http.post(CARD, json={})
    assert answer.status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
async def test_other_hosts_are_refused(door, host):
    answer = await door.get("/a2a/rest/tasks", Host=host)
    assert answer.status_code == 421
    assert door.app.scopes == []


@pytest.mark.parametrize(
    ("hosts", "host"),
    [
        (["127.0.0.1"], "127.0.0.1:8001"),
        (["localhost"], "LOCALHOST"),
        (["[::1]"], "[::1]:8001"),
        ([".example"], "replica.example"),
        (["*"], "anything.example"),
    ],
)
async def test_hosts_are_written_as_django_writes_them(make_door, hosts, host):
    answer = await make_door(hosts=hosts).get("/a2a/rest/tasks", Host=host)
    assert answer.status_code == 200


async def test_subject_that_sends_too_fast_waits(make_door, issuer):
    door = make_door(limiter=RateLimiter(0.5, 1, clock=lambda: 0.0))
    assert (await door.post(RPC, send())).status_code == 200
    answer = await door.post(RPC, send())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
    assert rpc_error(answer) == (7, -32000)
    door.token = issuer.token(sub="someone else")
    assert (await door.post(RPC, send())).status_code == 200


async def test_token_is_in_no_log(door, caplog):
    caplog.set_level(logging.DEBUG)
    await door.post(RPC, send())
    await door.post(RPC, b"{")
    assert door.token not in caplog.text


async def test_lifespan_passes():
    asked = []

    async def app(scope, receive, send):
        asked.append(scope)

    door = IdentityFilter(app, verifier=None, part="router", hosts=[], body_limit=1)
    await door({"type": "lifespan"}, None, None)
    assert asked == [{"type": "lifespan"}]


async def test_websocket_is_closed(door):
    sent = []

    async def note(message):
        sent.append(message)

    await door.filter({"type": "websocket"}, None, note)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert door.app.scopes == []


@pytest.mark.parametrize("authorized", [True, False])
async def test_client_that_leaves_is_not_answered(door, authorized):
    sent = []

    async def note(message):
        sent.append(message)

    token = f"Bearer {door.token if authorized else 'none'}".encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": RPC,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", token)],
    }
    await door.filter(scope, receiving(GONE), note)
    assert sent == door.app.scopes == []


# What may be written


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
async def test_send_is_stamped(door, method):
    await door.post(RPC, send(method))
    assert door.app.document == send(method, metadata={TENANT_KEY: "globex"})


@pytest.mark.parametrize("path", [REST, STREAM])
async def test_send_of_the_other_binding_is_stamped(door, path):
    await door.post(path, send()["params"])
    assert door.app.document == send(metadata={TENANT_KEY: "globex"})["params"]


async def test_content_length_fits_the_body(door):
    await door.post(RPC, send())
    assert int(door.app.headers["content-length"]) == len(door.app.body)


async def test_document_and_call_are_in_the_scope(door):
    await door.post(RPC, send())
    assert door.app.scope["a2a.body"] == door.app.document
    assert door.app.scope["a2a.call"].kind == "send"


@pytest.mark.case(8)
@pytest.mark.parametrize("key", SPELLINGS)
async def test_callers_word_about_the_tenant_counts_nowhere(door, key):
    sent = send(metadata={key: "acme", "a": [{key: "acme"}]}, tenant="acme")
    sent["params"]["message"]["metadata"] = {key: "acme", "k": "v"}
    sent["params"]["message"]["parts"][0]["metadata"] = {key: "acme"}
    sent["params"][key] = sent[key] = "acme"
    await door.post(RPC, sent)
    params = door.app.document["params"]
    assert key not in params or key == TENANT_KEY
    assert params["metadata"] == {"a": [{}], TENANT_KEY: "globex"}
    assert params["message"]["metadata"] == {"k": "v"}
    assert params["message"]["parts"] == [{"text": "hello", "metadata": {}}]
    assert key not in door.app.document


async def test_data_of_the_message_is_content(door):
    data = {"invoice": 8812, TENANT_KEY: "acme"}
    sent = send()
    sent["params"]["message"]["parts"] = [{"data": data}]
    await door.post(RPC, sent)
    assert door.app.document["params"]["message"]["parts"] == [{"data": data}]


@pytest.mark.parametrize("method", ["CancelTask", "GetTask", "sendmessage", 5, None])
async def test_what_is_no_send_is_cleaned_and_not_stamped(door, method):
    params = {"id": "t", "metadata": {TENANT_KEY: "acme", "k": "v"}}
    await door.post(RPC, {"id": 1, "method": method, "params": params})
    assert door.app.document["params"] == {"id": "t", "metadata": {"k": "v"}}


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc" : "2.0","id":1, "method":"GetTask","params":{"id" :"t"}}',
        b'[ {"method": "SendMessage"} ]',
        b'{"method":"SendMessage","params": [1] }',
        b'{"method":"SendMessage" }',
        b"null",
    ],
)
async def test_body_with_nothing_to_change_passes_byte_by_byte(door, body):
    await door.post(RPC, body)
    assert door.app.body == body


async def test_batch_is_cleaned(door):
    await door.post(RPC, [send(metadata={TENANT_KEY: "acme"})])
    assert door.app.document[0]["params"]["metadata"] == {}


async def test_later_of_two_equal_keys_wins_for_everybody(door):
    body = b'{"method":"SendMessage","params":{"metadata":{"k":1},"metadata":{"k":2}}}'
    await door.post(RPC, body)
    assert door.app.body == (
        b'{"method":"SendMessage","params":'
        b'{"metadata":{"k":2,"x-verified-tenant":"globex"}}}'
    )


@pytest.mark.case(5)
async def test_text_arrives_as_it_was_sent(door):
    sent = send()
    sent["params"]["message"]["parts"][0]["text"] = ODD_TEXT
    await door.post(RPC, sent)
    arrived = door.app.document["params"]["message"]["parts"][0]["text"]
    assert arrived == ODD_TEXT


def tenant_read(params):
    """Return the tenant that a2a-sdk hands to the executor."""
    request = Parse(json.dumps(params), SendMessageRequest())
    spelled = [key for key in request.metadata if "verified" in key.lower()]
    assert spelled == [TENANT_KEY]
    assert "verified" not in str(request.message).lower()
    return request.metadata[TENANT_KEY]


@pytest.mark.case(8)
@given(metadata=dictionaries | trees, of_message=dictionaries, of_part=dictionaries)
async def test_no_metadata_changes_the_tenant(metadata, of_message, of_part):
    issuer = TestIssuer()
    door = Door(issuer, verifier_of(issuer))
    params = send(metadata=metadata)["params"]
    params["message"]["metadata"] = of_message
    params["message"]["parts"][0]["metadata"] = of_part
    for path, document in ((RPC, {**send(), "params": params}), (REST, params)):
        answer = await door.post(path, document)
        if answer.json() == {"ok": True}:
            body = json.loads(door.app.bodies.pop())
            assert tenant_read(body["params"] if path == RPC else body) == "globex"
        else:
            assert "-32602" in answer.text or "INVALID_PARAMS" in answer.text
            assert door.app.bodies == []


# What is refused before a task exists


@pytest.mark.case(9)
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[NaN]"])
async def test_broken_json_is_a_parse_error_without_id(door, body):
    answer = await door.post(RPC, body)
    assert answer.status_code == 200
    assert rpc_error(answer) == (None, -32700)
    assert door.app.scopes == []


async def test_broken_json_on_the_other_binding_is_a_bad_request(door):
    answer = await door.post(REST, b"{")
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "INVALID_REQUEST"


@pytest.mark.case(6)
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_text_no_store_can_hold_is_refused_with_the_id(door, text):
    sent = send()
    sent["params"]["message"]["parts"][0]["text"] = text
    assert rpc_error(await door.post(RPC, sent)) == (7, -32602)
    assert (await door.post(REST, sent["params"])).status_code == 400
    assert door.app.scopes == []


@pytest.mark.case(6)
async def test_request_id_no_store_can_hold_is_refused_and_named(door):
    assert rpc_error(await door.post(RPC, {**send(), "id": "\0"})) == ("\0", -32602)


@pytest.mark.case(6)
@pytest.mark.parametrize("path", ["/a2a/rest/tasks/a%00b", "/a2a/rest/tasks?id=%00"])
async def test_nul_in_the_address_is_refused(door, path):
    answer = await door.get(path)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"


async def test_metadata_that_is_no_object_is_refused(door):
    assert rpc_error(await door.post(RPC, send(metadata=[]))) == (7, -32602)


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "application/a2a+json"],
)
async def test_other_content_type_is_refused(door, content_type):
    answer = await door.post(RPC, send(), **{"Content-Type": content_type})
    assert answer.status_code == 200
    assert rpc_error(answer) == (7, -32005)


async def test_content_type_is_refused_on_the_other_binding_too(door):
    answer = await door.post(REST, {}, **{"Content-Type": "text/plain"})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        (RPC, "application/json; charset=utf-8"),
        (RPC, "Application/JSON"),
        (REST, "application/json"),
        (REST, "application/a2a+json"),
    ],
)
async def test_json_is_named_in_several_ways(door, path, content_type):
    answer = await door.post(path, {}, **{"Content-Type": content_type})
    assert answer.status_code == 200


async def test_request_without_a_body_needs_no_content_type(door):
    async with door.client() as http:
        answer = await http.post("/a2a/rest/tasks/t:cancel")
    assert answer.status_code == 200
    assert door.app.body == b""


@pytest.mark.case(13)
@pytest.mark.parametrize("path", [RPC, REST])
async def test_body_over_the_limit_is_refused_as_json(door, path):
    answer = await door.post(path, b'"' + b"x" * 10_000 + b'"')
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/json"
    assert "10000 bytes" in answer.text


@pytest.mark.case(13)
@pytest.mark.parametrize("size", [1, 3, 6])
async def test_file_of_some_mebibytes_passes(make_door, size):
    door = make_door(body_limit=8 * 2**20)
    sent = send()
    content = "A" * (size * 2**20)
    sent["params"]["message"]["parts"] = [{"raw": content, "filename": "a.pdf"}]
    assert (await door.post(RPC, sent)).status_code == 200
    (arrived,) = door.app.document["params"]["message"]["parts"]
    assert arrived["raw"] == content


# What is announced


async def test_stamping_a_send_is_announced(door, heard):
    sent = send(metadata={"k": "v", "X-Verified-Tenant": "acme"})
    sent["params"]["message"] |= {"contextId": "ctx-41", "task_id": "t"}
    await door.post(RPC, sent)
    fact = facts.CallerVerified(
        tenant="globex",
        metadata_before={"k": "v", "X-Verified-Tenant": "acme"},
        metadata_after={"k": "v", TENANT_KEY: "globex"},
    )
    assert heard == [(fact, facts.Origin("replica-b", "someone", "ctx-41", "t"))]


@pytest.mark.parametrize("message", [None, "text", {"contextId": 5}])
async def test_send_without_a_usable_message_is_announced_without_ids(
    door, heard, message
):
    await door.post(RPC, {**send(), "params": {"message": message}})
    ((_, source),) = heard
    assert source == facts.Origin("replica-b", "someone")


async def test_only_sends_are_announced(door, heard):
    await door.get("/a2a/rest/tasks")
    await door.post(RPC, {"id": 1, "method": "GetTask", "params": {"id": "t"}})
    assert heard == []


# When something breaks behind it


async def test_what_breaks_behind_it_is_json_without_its_text(make_door):
    async def broken(scope, receive, send):
        raise RuntimeError("postgresql://user:secret@host")

    answer = await make_door(app=broken).post(RPC, send())
    assert answer.status_code == 500
    assert rpc_error(answer) == (None, -32603)
    assert "secret" not in answer.text


async def test_receiver_that_fails_stops_the_request(door):
    async def broken(fact, **_):
        raise RuntimeError

    facts.announced.connect(broken)
    try:
        answer = await door.post(RPC, send())
    finally:
        facts.announced.disconnect(broken)
    assert answer.status_code == 500
    assert door.app.scopes == []
