"""The router in front of two replicas."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from billing_agent import facts
from billing_agent.router.routing import route, scores
from tests.billing_agent.asgi import GONE, client, part, receiving, say
from tests.billing_agent.router.replicas import Stage, Stream

A, B = "replica-a", "replica-b"
SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1")],
}


def error_of(answer):
    document = answer.json()
    return document["id"], document["error"]["code"]


# Whose request it is


async def test_conversation_stays_at_its_replica(stage):
    answers = [await stage.send("ctx-41") for _ in range(3)]
    assert stage.asked == [B, B, B]
    assert [answer.json() for answer in answers] == [B, B, B]
    assert answers[0].headers["x-replica"] == B
    assert answers[0].headers["x-route-reason"] == "affinity"


async def test_without_affinity_replicas_take_turns_from_the_second(stage):
    for _ in range(3):
        answer = await stage.send(**{"X-Affinity": "off"})
    assert stage.asked == [B, A, B]
    assert answer.headers["x-route-reason"] == "turn"


async def test_turns_are_counted_for_each_caller(stage):
    await stage.send(**{"X-Affinity": "off"})
    stage.entrance.subject = "someone else"
    await stage.send(**{"X-Affinity": "off"})
    assert stage.asked == [B, B]


async def test_task_only_request_follows_the_last_send(stage):
    headers = {"X-Affinity": "off", "X-A2A-Context": "ctx-41"}
    for _ in range(2):
        await stage.send(**headers)
        await stage.call("GetTask", {"id": "t"}, **headers)
        await stage.ask("POST", "/a2a/rest/tasks/t:cancel", headers=headers)
    assert stage.asked == [B, B, B, A, A, A]


async def test_task_only_request_without_a_last_send_goes_by_digest(stage):
    headers = {"X-Affinity": "off", "X-A2A-Context": "ctx-41"}
    answer = await stage.call("GetTask", {"id": "t"}, **headers)
    assert stage.asked == [B]
    assert answer.headers["x-route-reason"] == "affinity"


async def test_sends_with_affinity_do_not_advance_the_turn(stage):
    await stage.send()
    await stage.send()
    await stage.send(**{"X-Affinity": "off"})
    assert stage.asked == [B, B, B]


async def test_task_is_looked_up_in_the_store():
    async def contexts(subject, task_id):
        return "ctx-41" if (subject, task_id) == ("someone", "t") else ""

    stage = Stage(task_contexts=contexts)
    await stage.call("CancelTask", {"id": "t"})
    answer = await stage.call("CancelTask", {"id": "unknown"})
    assert stage.asked == [B, A]
    assert answer.headers["x-route-reason"] == "any"


async def test_new_conversation_goes_where_its_new_context_belongs(stage):
    answer = await stage.call("SendMessage", {"message": {"messageId": "m"}})
    replica = answer.json()
    message = stage.taken(replica).document["params"]["message"]
    assert route(message["contextId"], [A, B]) == replica


async def test_card_comes_from_any_replica(stage):
    answer = await stage.ask("GET", "/.well-known/agent-card.json")
    assert answer.status_code == 200
    stage.replicas.stop(A)
    answer = await stage.ask("GET", "/.well-known/agent-card.json")
    assert answer.headers["x-route-reason"] == "any, replica-a is down"


async def test_unknown_wish_is_refused(stage):
    answer = await stage.send(**{"X-Affinity": "sometimes"})
    assert error_of(answer) == (7, -32602)
    assert stage.asked == []


# What is passed on


async def test_request_is_passed_on_as_it_is(stage):
    headers = {
        "Authorization": "Bearer token",
        "A2A-Version": "1.0",
        "A2A-Extensions": "https://example/extension",
        "Content-Type": "application/json",
        "Host": "demo.example:8080",
    }
    body = b'{"method" : "GetTask","params":{"id":"t"}}'
    await stage.ask("POST", "/a2a/?a=%20b", content=body, headers=headers)
    (taken,) = [app for app in stage.replicas.apps.values() if app.scopes]
    assert taken.body == body
    assert taken.scope["query_string"] == b"a=%20b"
    assert taken.headers.items() >= {k.lower(): v for k, v in headers.items()}.items()
    assert taken.headers["content-length"] == str(len(body))


async def test_escapes_in_the_path_are_kept(stage):
    await stage.ask("GET", "/a2a/rest/tasks/a%2Fb%20c")
    assert stage.taken(A).scope["raw_path"] == b"/a2a/rest/tasks/a%2Fb%20c"


@pytest.mark.case(12)
async def test_compression_is_never_asked_for(stage):
    await stage.ask("GET", "/", headers={"Accept-Encoding": "gzip"})
    assert stage.taken(A).headers["accept-encoding"] == "identity"


async def test_headers_of_one_hop_stay_there(stage):
    headers = {
        "Connection": "keep-alive, X-Mine",
        "Keep-Alive": "5",
        "TE": "trailers",
        "Upgrade": "h2c",
        "X-Mine": "1",
        "X-Other": "2",
    }
    await stage.ask("GET", "/", headers=headers)
    reached = stage.taken(A).headers
    assert reached.keys() & {"te", "upgrade", "keep-alive", "x-mine"} == set()
    assert reached["x-other"] == "2"


def answering(status, document, *headers):
    async def app(scope, receive, send):
        await say(send, status, document, headers)

    return app


async def test_answer_is_passed_back_as_it_is(stage):
    headers = [(b"etag", b'"1"'), (b"x-replica", b"its own"), (b"keep-alive", b"5")]
    stage.replicas.apps[A] = answering(404, {"error": "é"}, *headers)
    answer = await stage.ask("GET", "/nothing")
    assert (answer.status_code, answer.json()) == (404, {"error": "é"})
    assert (answer.headers["etag"], answer.headers["x-replica"]) == ('"1"', "its own")
    assert "keep-alive" not in answer.headers


async def test_repeated_headers_are_all_passed_back(stage):
    cookies = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
    stage.replicas.apps[A] = answering(200, {}, *cookies)
    answer = await stage.ask("GET", "/")
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


async def test_path_that_is_none_is_refused(stage):
    sent = []

    async def note(message):
        sent.append(message)

    scope = {**SCOPE, "path": "/\x7f", "raw_path": b"/\x7f"}
    await stage.router(scope, receiving(part(b""), GONE), note)
    assert sent[0]["status"] == 400
    assert stage.asked == []


# When a replica is down


async def test_next_digest_takes_over_and_says_so(stage):
    stage.replicas.stop(B)
    answer = await stage.send()
    assert stage.asked == [B, A]
    assert answer.json() == A
    assert answer.headers["x-route-reason"] == "affinity, replica-b is down"


async def test_body_arrives_whole_at_the_one_that_takes_over(stage):
    stage.replicas.stop(B)
    await stage.send("ctx-41")
    assert stage.taken(A).document["params"]["message"]["contextId"] == "ctx-41"


async def test_task_follows_the_send_to_the_one_that_took_over(stage):
    stage.replicas.stop(B)
    headers = {"X-Affinity": "off", "X-A2A-Context": "ctx-41"}
    await stage.send(**headers)
    stage.replicas.broken.clear()
    await stage.call("GetTask", {"id": "t"}, **headers)
    assert stage.asked == [B, A, A]


async def test_replica_about_to_stop_is_not_waited_for(stage):
    draining = answering(503, {}, (b"retry-after", b"1"))
    stage.replicas.apps[B] = draining
    assert (await stage.send()).json() == A
    assert stage.asked == [B, A]


async def test_other_503_is_an_answer(stage):
    stage.replicas.apps[B] = answering(503, {"busy": True})
    answer = await stage.send()
    assert (answer.status_code, answer.json()) == (503, {"busy": True})
    assert stage.asked == [B]


async def test_slow_connection_counts_as_down(stage):
    stage.replicas.broken[B] = httpx.ConnectTimeout("slow")
    assert (await stage.send()).json() == A


async def test_both_down_is_said_in_json_rpc(stage):
    stage.replicas.stop(A, B)
    answer = await stage.send()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert error_of(answer) == (7, -32000)


async def test_both_down_is_said_on_the_other_binding(stage):
    stage.replicas.stop(A, B)
    answer = await stage.ask("GET", "/a2a/rest/tasks/t")
    assert answer.status_code == 503
    assert answer.json()["error"]["status"] == "UNAVAILABLE"


@pytest.mark.parametrize(
    "error", [httpx.ReadError("reset"), httpx.RemoteProtocolError("gone")]
)
async def test_what_may_have_run_is_never_sent_again(stage, error):
    stage.replicas.broken[B] = error
    answer = await stage.send()
    assert answer.status_code == 502
    assert error_of(answer) == (7, -32603)
    assert stage.asked == [B]


# Streams


GONE_AWAY = httpx.ReadError("reset")


def streaming(*pieces, kind="text/event-stream; charset=utf-8"):
    headers = {"Content-Type": kind}
    return httpx.Response(200, headers=headers, stream=Stream(*pieces))


def staying(*messages):
    """Return a ``receive`` of a client that does not leave."""
    waiting = list(messages)

    async def receive():
        return waiting.pop(0) if waiting else await asyncio.Event().wait()

    return receive


async def messages_of(stage, path="/a2a/"):
    """Return the messages a server would get for a send that is streamed."""
    sent = []

    async def note(message):
        sent.append(message)

    body = json.dumps({"id": 7, "method": "GetTask", "params": {}}).encode()
    scope = {**SCOPE, "method": "POST", "path": path}
    await stage.entrance(scope, staying(part(body)), note)
    return sent


async def test_stream_is_passed_back_piece_by_piece(stage):
    stage.replicas.apps[A] = answer = streaming(b"data: 1\n\n", b"data: 2\n\n")
    start, *bodies = await messages_of(stage)
    assert (b"x-replica", b"replica-a") in start["headers"]
    assert [(body["body"], body.get("more_body", False)) for body in bodies] == [
        (b"data: 1\n\n", True),
        (b"data: 2\n\n", True),
        (b"", False),
    ]
    assert answer.is_closed


async def test_stream_that_breaks_off_ends_with_an_error(stage):
    stage.replicas.apps[A] = streaming(b"data: 1\n\ndata: {", GONE_AWAY)
    *_, last = await messages_of(stage)
    assert last["body"].startswith(b'\n\ndata: {"jsonrpc"')
    assert last["body"].endswith(b"}\n\n")
    assert error_of_event(last["body"]) == (7, -32603)


async def test_error_of_the_other_binding_is_an_error_event(stage):
    stage.replicas.apps[A] = streaming(b"data: 1\n\n", GONE_AWAY)
    *_, last = await messages_of(stage, "/a2a/rest/message:stream")
    name, _, data = last["body"].strip().partition(b"\n")
    assert name == b"event: error"
    assert json.loads(data.removeprefix(b"data: "))["error"]["code"] == 502


def error_of_event(event):
    error = json.loads(event.strip().removeprefix(b"data: "))
    return error["id"], error["error"]["code"]


async def test_answer_that_is_no_stream_becomes_an_error_when_it_breaks_off(stage):
    stage.replicas.apps[B] = streaming(b"{", GONE_AWAY, kind="application/json")
    answer = await stage.send()
    assert answer.status_code == 502
    assert error_of(answer) == (7, -32603)


# What it says of itself


async def test_router_is_healthy_whatever_the_replicas_are(stage):
    stage.replicas.stop(A, B)
    answer = await stage.ask("GET", "/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_router_is_ready_with_one_replica(stage):
    stage.replicas.apps[A] = answering(503, {})
    answer = await stage.ask("GET", "/readyz")
    assert (answer.status_code, answer.json()) == (200, {"replicas": [B]})


async def test_router_is_not_ready_without_any(stage):
    stage.replicas.stop(A, B)
    answer = await stage.ask("GET", "/readyz")
    assert (answer.status_code, answer.json()) == (503, {"replicas": []})


async def test_router_that_drains_is_not_ready(stage):
    async with client(stage.entrance) as http:
        assert (await http.get("/readyz")).status_code == 200
    stage.router._draining = True
    assert (await stage.ask("GET", "/readyz")).status_code == 503


# What it announces


@pytest.fixture
def heard():
    found = []

    async def hear(fact, source, **_):
        found.append((fact, source))

    facts.announced.connect(hear)
    yield found
    facts.announced.disconnect(hear)


async def test_choice_is_announced_with_every_digest(stage, heard):
    await stage.send("ctx-41")
    digests = scores("ctx-41", [A, B])
    assert heard == [
        (
            facts.ReplicaChosen(B, "affinity", True, digests),
            facts.Origin("router", "someone", "ctx-41"),
        )
    ]


async def test_choice_is_announced_before_the_replica_is_asked(stage):
    asked_by_then = []

    async def hear(fact, **_):
        asked_by_then.append(list(stage.asked))

    facts.announced.connect(hear)
    try:
        await stage.send()
    finally:
        facts.announced.disconnect(hear)
    assert asked_by_then == [[]]


async def test_taking_over_is_announced_too(stage, heard):
    stage.replicas.stop(B)
    await stage.send(**{"X-Affinity": "off"})
    assert [(fact.replica, fact.reason, fact.affinity) for fact, _ in heard] == [
        (B, "turn", False),
        (A, "turn, replica-b is down", False),
    ]


async def test_task_only_request_is_announced_with_its_task(stage, heard):
    await stage.call("CancelTask", {"id": "t"}, **{"X-A2A-Context": "ctx-41"})
    ((_, source),) = heard
    assert source == facts.Origin("router", "someone", "ctx-41", "t")


async def test_requests_about_no_conversation_are_not_announced(stage, heard):
    await stage.ask("GET", "/.well-known/agent-card.json")
    assert heard == []


# The end


class Begun:
    """A request to a replica that never answers."""

    def __init__(self, stage):
        self.reached, self.left = asyncio.Event(), asyncio.Event()
        self.dropped = asyncio.Event()
        self.sent = []
        stage.replicas.apps = {A: self.replica, B: self.replica}
        self._messages = [part(b"")]
        self.work = asyncio.create_task(
            stage.router(SCOPE, self.receive, self.sent.append)
        )

    async def replica(self, scope, receive, send):
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.dropped.set()

    async def receive(self):
        if self._messages:
            return self._messages.pop()
        await self.left.wait()
        return GONE


@pytest.fixture
async def begun(stage):
    request = Begun(stage)
    await asyncio.wait_for(request.reached.wait(), 10)
    yield request
    request.left.set()
    await asyncio.wait({request.work}, timeout=10)


async def test_client_that_leaves_ends_the_request_to_the_replica(begun):
    begun.left.set()
    await asyncio.wait_for(begun.dropped.wait(), 10)
    await begun.work
    assert begun.sent == []


async def test_server_that_abandons_the_request_ends_it(begun):
    begun.work.cancel()
    await asyncio.wait_for(begun.dropped.wait(), 10)
    with pytest.raises(asyncio.CancelledError):
        await begun.work


async def test_drain_waits_for_open_requests(stage, begun):
    drain = asyncio.create_task(stage.router.drain(60))
    await asyncio.sleep(0)
    assert not drain.done()
    begun.left.set()
    await asyncio.wait_for(drain, 10)
    assert begun.dropped.is_set()


async def test_drain_waits_no_longer_than_its_grace(stage, begun):
    await asyncio.wait_for(stage.router.drain(0), 10)
    assert not begun.work.done()


async def test_drain_without_open_requests_ends_at_once(stage):
    await asyncio.wait_for(stage.router.drain(60), 10)
