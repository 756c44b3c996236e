"""The client, against a real server that is as awkward as HTTP allows."""

from __future__ import annotations

import asyncio
import base64
import json
from urllib.parse import parse_qs

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import client, deployment, tokens, transport
from orchestrator.client import SWITCHES_URI, TIMEOUT, AgentClient, Call
from orchestrator.config import Configuration, Output, Toggle
from orchestrator.errors import (
    AgentRefused,
    AgentSilent,
    AgentUnreachable,
    StreamBroken,
    TokenUnavailable,
)
from orchestrator.transport import WireTransport
from tests.orchestrator.peer import (
    Reply,
    artifact,
    serving,
    sse,
    status,
    stream,
    submitted,
    told,
)

AWKWARD = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne\x0bf\x0cg\x1ch"
CALL = Call(
    subject="orchestrator/r-test",
    tenant="acme",
    context_id="ctx-41",
    task_id="",
    message_id="r-test-1",
    text="Why?",
    configuration=Configuration(affinity=Toggle.OFF, output=Output.PER_EVENT),
)


@pytest.fixture
async def peer():
    async with serving() as running:
        yield running


@pytest.fixture
async def agent(peer):
    made = AgentClient(peer.deployment)
    yield made
    await made.aclose()


async def sent(agent):
    """Send, and return the request as shown and the frames that came."""
    shown = []

    async def sending(request):
        shown.append(request)

    frames = [frame async for frame in agent.stream(CALL, sending)]
    return shown[0], frames


# The request


async def test_the_message_goes_out_as_the_protocol_has_it(peer, agent):
    peer.replies["/a2a/"] = stream(status("COMPLETED"))
    await sent(agent)
    [request] = peer.asked("/a2a/")
    assert request.headers["a2a-version"] == "1.0"
    assert request.headers["a2a-extensions"] == SWITCHES_URI
    assert request.headers["x-affinity"] == "off"
    assert request.headers["x-a2a-context"] == CALL.context_id
    assert request.headers["authorization"] == "Bearer secret-token"
    assert request.headers["accept"] == "text/event-stream"
    assert request.json["method"] == "SendStreamingMessage"
    params = request.json["params"]
    assert params["metadata"] == {
        SWITCHES_URI: {
            "continuity": "on",
            "output": "per-event",
            "sessions": "memory",
        }
    }
    assert params["message"] == {
        "messageId": "r-test-1",
        "contextId": "ctx-41",
        "role": "ROLE_USER",
        "parts": [{"text": "Why?"}],
    }


async def test_the_request_is_shown_as_sent_without_the_token(peer, agent):
    peer.replies["/a2a/"] = stream(status("COMPLETED"))
    shown, _ = await sent(agent)
    [request] = peer.asked("/a2a/")
    assert shown["body"] == request.json
    assert shown["url"] == f"{peer.url}/a2a/"
    assert shown["headers"]["A2A-Version"] == "1.0"
    assert shown["headers"]["X-Affinity"] == "off"
    assert "secret-token" not in json.dumps(shown)
    assert shown["headers"]["Authorization"] == (
        f"Bearer {tokens.fingerprint('secret-token')}"
    )


async def test_nothing_leaves_before_the_request_was_recorded(peer, agent):
    async def sending(request):
        assert peer.asked("/a2a/") == []
        raise RuntimeError("not recorded")

    with pytest.raises(RuntimeError, match="not recorded"):
        await anext(agent.stream(CALL, sending))
    assert peer.asked("/a2a/") == []


async def test_the_card_is_read_once(peer, agent):
    peer.replies["/a2a/"] = lambda request: stream(status("COMPLETED"))
    await asyncio.gather(*(sent(agent) for _ in range(3)))
    assert len(peer.asked("/.well-known/agent-card.json")) == 1


@pytest.mark.case(15)
def test_time_limits_leave_room_for_a_slow_model():
    assert TIMEOUT.connect == 5
    assert TIMEOUT.read == transport.EVENT_SECONDS == 60


# The answer


async def test_each_kind_of_event_is_read(peer, agent):
    peer.replies["/a2a/"] = stream(
        submitted(),
        status("WORKING"),
        artifact("Compute rose.", append=True, lastChunk=False),
        status("INPUT_REQUIRED", "Which?"),
    )
    _, frames = await sent(agent)
    assert [frame.type for frame in frames] == ["task", "status", "artifact", "status"]
    assert [frame.state[11:] for frame in frames] == [
        "SUBMITTED",
        "WORKING",
        "",
        "INPUT_REQUIRED",
    ]
    assert {(f.task_id, f.context_id, f.replica) for f in frames} == {
        ("task-1", "ctx-41", "replica-b")
    }
    assert frames[3].text == "Which?"
    part = frames[2]
    assert (part.texts, part.artifact_id) == (("Compute rose.",), "art-1")
    assert (part.append, part.last_chunk) == (True, False)


async def test_whole_numbers_arrive_whole(peer, agent):
    peer.replies["/a2a/"] = stream(artifact("x"))
    _, [frame] = await sent(agent)
    [data] = frame.data
    assert (
        json.dumps(data, sort_keys=True) == '{"change": [1055.5, 2], "invoice": 8812}'
    )


async def test_sizes_are_those_of_the_payload(peer, agent):
    peer.replies["/a2a/"] = stream(artifact("請求書"))
    _, [frame] = await sent(agent)
    payload = peer.replies["/a2a/"].pieces[0].removeprefix(b"data: ").rstrip()
    assert frame.size == len(payload)
    assert frame.response == json.loads(payload)["result"]
    assert json.dumps(frame.as_data())


async def test_a_message_instead_of_a_task_is_read(peer, agent):
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hello"}]}
    peer.replies["/a2a/"] = stream({"message": message}, replica="")
    _, [frame] = await sent(agent)
    assert (frame.type, frame.text, frame.replica) == ("message", "Hello", "")


async def test_a_task_that_holds_artifacts_brings_them(peer, agent):
    task = submitted()
    held = artifact("Compute rose.")["artifactUpdate"]["artifact"]
    task["task"]["artifacts"] = [held]
    task["task"]["status"] = {"state": "TASK_STATE_COMPLETED"}
    peer.replies["/a2a/"] = stream(task)
    _, frames = await sent(agent)
    assert [frame.type for frame in frames] == ["task", "artifact"]
    assert frames[1].texts == ("Compute rose.",)
    assert (frames[1].append, frames[1].last_chunk) == (False, True)
    assert (frames[1].task_id, frames[1].replica) == ("task-1", "replica-b")


@pytest.mark.case(5)
async def test_text_arrives_as_it_was_sent(peer, agent):
    peer.replies["/a2a/"] = stream(artifact(AWKWARD))
    _, [frame] = await sent(agent)
    assert frame.texts == (AWKWARD,)


@settings(deadline=None, max_examples=30)
@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@pytest.mark.case(5)
def test_no_cut_and_no_line_end_changes_what_arrives(data, newline):
    raw = b": comment\n\n" + sse(artifact(AWKWARD)) + b"event: ping\n\n: more\n"
    raw = (raw + b"id: 7\nretry: 10\n" + sse(status("COMPLETED"))).replace(
        b"\n", newline
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    async def received():
        async with serving() as peer:
            peer.replies["/a2a/"] = stream(*pieces)
            agent = AgentClient(peer.deployment)
            try:
                return (await sent(agent))[1]
            finally:
                await agent.aclose()

    first, last = asyncio.run(received())
    assert first.texts == (AWKWARD,)
    assert last.state == "TASK_STATE_COMPLETED"


async def test_data_in_several_lines_is_one_event(peer, agent):
    lines = json.dumps({"jsonrpc": "2.0", "result": status("WORKING")}, indent=1)
    data = "".join(f"data: {line}\n" for line in lines.splitlines())
    peer.replies["/a2a/"] = stream(data.encode() + b"\n")
    _, [frame] = await sent(agent)
    assert frame.state == "TASK_STATE_WORKING"


@pytest.mark.case(12)
async def test_events_are_given_on_as_they_arrive(peer, agent):
    rest = asyncio.Event()
    peer.replies["/a2a/"] = stream(status("WORKING"), rest, status("COMPLETED"))

    async def sending(request):
        pass

    frames = agent.stream(CALL, sending)
    async with asyncio.timeout(10):
        assert (await anext(frames)).state == "TASK_STATE_WORKING"
        rest.set()
        assert (await anext(frames)).state == "TASK_STATE_COMPLETED"
        assert await anext(frames, None) is None


# What goes wrong


def error(code, message="no"):
    return {"jsonrpc": "2.0", "id": "1", "error": {"code": code, "message": message}}


REFUSALS = {
    "unauthorized": (told(error(-32001), status=401), AgentRefused, "HTTP 401"),
    "too large": (told(error(-32600), status=413), AgentRefused, "HTTP 413"),
    "json-rpc error": (told(error(-32602, "bad switch")), AgentRefused, "bad switch"),
    "no replica": (told(error(-32603), status=503), AgentUnreachable, "HTTP 503"),
    "lost replica": (told(error(-32603), status=502), AgentUnreachable, "HTTP 502"),
    "late replica": (told({}, status=504), AgentSilent, "HTTP 504"),
    "a page": (Reply([b"<html>"], type="text/html"), AgentRefused, "<html>"),
    "error event": (
        stream(b"data: " + json.dumps(error(-32001)).encode() + b"\n\n"),
        AgentRefused,
        "TaskNotFoundError",
    ),
    "no json": (stream(b"data: {nonsense\n\n"), StreamBroken, "unreadable"),
    "no result": (stream(b'data: {"jsonrpc": "2.0"}\n\n'), AgentRefused, "neither"),
    "no event": (stream(b'data: {"result": [1]}\n\n'), StreamBroken, "unreadable"),
    "cut off": (stream(status("WORKING"), whole=False), StreamBroken, "incomplete"),
    "cut refusal": (
        Reply([b"{"], 500, whole=False),
        StreamBroken,
        "incomplete",
    ),
}


@pytest.mark.parametrize(("reply", "kind", "said"), REFUSALS.values(), ids=REFUSALS)
async def test_what_is_no_answer_is_an_error(peer, agent, reply, kind, said):
    peer.replies["/a2a/"] = reply
    with pytest.raises(kind, match=said):
        await sent(agent)


async def test_nobody_at_the_address_is_an_error(peer):
    nowhere = AgentClient(peer.deployed(public_url="http://127.0.0.1:1"))
    with pytest.raises(AgentUnreachable, match="agent card"):
        await sent(nowhere)
    await nowhere.aclose()


async def test_an_agent_that_left_after_its_card_is_unreachable(peer, agent):
    card = peer.card()
    card["supportedInterfaces"][0]["url"] = "http://127.0.0.1:1/a2a/"
    peer.replies["/.well-known/agent-card.json"] = told(card)
    with pytest.raises(AgentUnreachable, match="ConnectError"):
        await sent(agent)


async def test_a_card_without_json_rpc_is_an_error(peer, agent):
    card = peer.card()
    card["supportedInterfaces"][0]["protocolBinding"] = "GRPC"
    peer.replies["/.well-known/agent-card.json"] = told(card)
    with pytest.raises(AgentUnreachable, match="no compatible transports"):
        await sent(agent)


async def test_comments_are_no_sign_of_life(peer, agent, monkeypatch):
    monkeypatch.setattr(transport, "EVENT_SECONDS", 0.05)
    never = asyncio.Event()
    peer.replies["/a2a/"] = stream(b": ping\n\n", never)
    with pytest.raises(AgentSilent):
        await sent(agent)
    never.set()


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectTimeout("slow"), AgentUnreachable),
        (httpx.ReadTimeout("slow"), AgentSilent),
        (httpx.ReadError("cut"), AgentUnreachable),
    ],
)
async def test_a_request_without_any_response_is_an_error(
    peer, agent, monkeypatch, raised, kind
):
    send = httpx.AsyncClient.send

    async def failing(self, request, **options):
        if request.url.path == "/a2a/":
            raise raised
        return await send(self, request, **options)

    monkeypatch.setattr(httpx.AsyncClient, "send", failing)
    with pytest.raises(kind):
        await sent(agent)


async def test_the_transport_needs_to_know_where_to_put_the_wire(peer):
    async with httpx.AsyncClient() as http:
        wired = WireTransport(http, None, peer.url)
        with pytest.raises(ValueError, match="wire"):
            await anext(wired.send_message_streaming(CALL.as_request()))


# Tokens


async def token(agent, subject="orchestrator/r-test", tenant="acme"):
    return await agent._tokens.get(subject, tenant)


async def test_a_token_is_asked_for_by_client_credentials(peer, agent):
    assert await token(agent) == "secret-token"
    [request] = peer.asked("/token")
    basic = base64.b64encode(b"orchestrator:its-secret").decode()
    assert request.headers["authorization"] == f"Basic {basic}"
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["client_credentials"],
        "subject": ["orchestrator/r-test"],
        "tenant": ["acme"],
    }


async def test_a_token_is_kept_for_its_subject_and_tenant(peer, agent):
    await token(agent)
    await token(agent)
    assert len(peer.asked("/token")) == 1
    await token(agent, tenant="globex")
    await token(agent, subject="orchestrator/r-other")
    assert len(peer.asked("/token")) == 3
    assert len(peer.asked(tokens.METADATA_PATH)) == 1


@pytest.mark.parametrize("answer", [{"expires_in": 20}, {}])
async def test_a_token_about_to_end_is_not_used_again(peer, agent, answer):
    peer.replies["/token"] = told({"access_token": "short"} | answer)
    await token(agent)
    await token(agent)
    assert len(peer.asked("/token")) == 2


async def test_tokens_kept_are_bounded(peer, agent, monkeypatch):
    monkeypatch.setattr(tokens, "_MOST_KEPT", 2)
    for subject in ("a", "b", "c", "a"):
        await token(agent, subject)
    assert len(peer.asked("/token")) == 4


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("/token", told({"error": "invalid_client"}, status=401)),
        ("/token", told({"token_type": "bearer"})),
        ("/token", Reply([b"<html>"])),
        ("/token", told(["not", "an", "object"])),
        (tokens.METADATA_PATH, told({}, status=500)),
        (tokens.METADATA_PATH, told({"token_endpoint": "http://evil.example/"})),
        (tokens.METADATA_PATH, told({"issuer": "http://evil.example"})),
    ],
)
async def test_an_issuer_that_gives_no_token_is_an_error(peer, agent, path, reply):
    usual = peer.replies[path]
    peer.replies[path] = reply
    with pytest.raises(TokenUnavailable):
        await token(agent)
    peer.replies[path] = usual
    assert await token(agent) == "secret-token"


def test_a_fingerprint_does_not_tell_the_token():
    assert tokens.fingerprint("secret-token").startswith("sha256:")
    assert "secret" not in tokens.fingerprint("secret-token")
    assert tokens.fingerprint("a") != tokens.fingerprint("b")


# The ledger


def ledger_of(name, *sessions):
    held = [{"user": "A2A_USER_ctx-41", "session_id": s, "events": 4} for s in sessions]
    return told(
        {
            "replica": name,
            "stores": [
                {"store": "memory", "sessions": held},
                {"store": "shared", "sessions": []},
            ],
        }
    )


async def ledger(peer, **replicas):
    agent = AgentClient(peer.deployed(replicas=replicas))
    try:
        return await agent.ledger("orchestrator/r-test", "acme")
    finally:
        await agent.aclose()


async def test_every_replica_is_read_and_the_shared_store_listed_once(peer):
    peer.replies["/a/demo/ledger"] = ledger_of("a")
    peer.replies["/b/demo/ledger"] = ledger_of("b", "ctx-41")
    found = await ledger(peer, a=f"{peer.url}/a", b=f"{peer.url}/b")
    assert [(store["store"], store["replica"]) for store in found.stores] == [
        ("memory", "a"),
        ("memory", "b"),
        ("shared", ""),
    ]
    assert found.stores[1]["sessions"][0]["session_id"] == "ctx-41"
    assert found.unread == []
    assert {r.headers["authorization"] for r in peer.requests if "demo" in r.path} == {
        "Bearer secret-token"
    }


async def test_a_replica_that_does_not_answer_is_named(peer):
    peer.replies["/b/demo/ledger"] = ledger_of("b", "ctx-41")
    peer.replies["/c/demo/ledger"] = Reply([b"<html>"])
    found = await ledger(
        peer, a="http://127.0.0.1:1", b=f"{peer.url}/b", c=f"{peer.url}/c"
    )
    assert found.unread == ["a", "c"]
    assert [store["replica"] for store in found.stores] == ["b", ""]


# One client a loop


async def test_the_loop_s_client_is_made_once_and_again_after_closing(peer):
    with deployment.using(peer.deployment):
        first = client.shared()
        assert client.shared() is first
        await client.close()
        second = client.shared()
        assert second is not first
        await client.close()


async def test_closing_without_a_client_is_nothing():
    await client.close()
