"""Large bodies and long streams: through whole, or refused as JSON."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from orchestrator import runs, story
from orchestrator.config import Configuration
from tests.peer import ENDED, message_params, state
from tests.security.bindings import BINDINGS, EVERYWHERE, RPC, ask, message, result
from tests.security.conftest import aimed_at

pytestmark = pytest.mark.processes

MEBIBYTE = 2**20
LIMIT = 8 * MEBIBYTE  # BODY_LIMIT
NOISY = "audit the last 15 invoices"


def with_file(mebibytes):
    """Return a send with a file of some mebibytes."""
    content = base64.b64encode(b"invoice\n" * (mebibytes * MEBIBYTE // 8)).decode()
    file = {"raw": content, "mediaType": "text/plain", "filename": "invoices.txt"}
    return message(parts=[{"text": "Show invoice 8812"}, file])


@pytest.mark.case(13)
@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_file_is_taken_or_refused_as_json(make_peer, where, binding):
    peer = await make_peer(where)
    for mebibytes in (1, 3, 6):
        params = with_file(mebibytes)
        answer = await ask(peer.http, binding, "SendMessage", params)
        if len(json.dumps(params)) < LIMIT:
            task = result(binding, answer)["task"]
            assert state(task) == "COMPLETED"
            assert task["history"][0]["parts"] == params["message"]["parts"]
        else:
            assert answer.status_code == 413
            assert answer.headers["content-type"] == "application/json"
            error = answer.json()["error"]
            assert error["message"] == f"the body is larger than {LIMIT} bytes"
        listed = await ask(peer.http, binding, "ListTasks", {"pageSize": 1})
        assert result(binding, listed)["pageSize"] == 1


@pytest.mark.case(13)
async def test_large_file_is_kept_for_whoever_asks_elsewhere(make_peer):
    a = await make_peer("replica-a", "large-file")
    b = await make_peer("replica-b", "large-file")
    params = with_file(3)
    sent = (await a.rpc("SendMessage", params))["task"]
    assert await b.get(sent["id"]) == sent


@pytest.mark.case(13)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_body_without_a_length_is_bounded_too(make_peer, where):
    peer = await make_peer(where)

    async def pieces():
        for _ in range(9):
            yield b" " * MEBIBYTE

    headers = {"Content-Type": "application/json"}
    answer = await peer.http.post("/a2a/", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == -32600


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"POST /a2a/ HTTP/1.1\r\nHost: a\r\nContent-Length: -1",
        b"POST /a2a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2",
        b"GET /\xff HTTP/1.1\r\nHost: a",
        b"GET /a2a/ HTTP/1.1",
        b"hello",
    ],
)
async def test_what_is_no_http_is_refused_without_a_traceback(demo, head):
    for url in (demo.router_url, *demo.replicas.values(), demo.web_url):
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(head + b"\r\nConnection: close\r\n\r\n0\r\n\r\n")
        async with asyncio.timeout(10):
            answer = await reader.read(65_536)
        writer.close()
        assert b"Traceback" not in answer
        assert b" 200 " not in answer.partition(b"\r\n")[0]


async def first_frames(http, address, params, headers):
    """Return how the stream begins, and its frames up to the second state."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage"}
    body = {**call, "params": params}
    async with http.stream("POST", address, json=body, headers=headers) as answer:
        frames = []
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                frames.append(json.loads(line.removeprefix("data:"))["result"])
                yield answer, frames


@pytest.mark.case(12)
@pytest.mark.parametrize("where", EVERYWHERE)
async def test_stream_is_neither_compressed_nor_held_back(
    slow_demo, make_slow_peer, where
):
    peer, other = await make_slow_peer(where), None
    params, headers = message_params(NOISY, output="per-event")
    headers |= {"Accept-Encoding": "gzip", "Accept": "text/event-stream"}
    async for answer, frames in first_frames(peer.http, "/a2a/", params, headers):
        assert "content-encoding" not in answer.headers
        assert answer.headers["content-type"].startswith("text/event-stream")
        if other is None:
            # The run is on its way: nothing waits for its end.
            other = (await peer.get(frames[0]["task"]["id"]))["status"]["state"]
            assert other not in ENDED
    assert frames[-1]["statusUpdate"]["status"]["state"] in ENDED
    assert sum("artifactUpdate" in frame for frame in frames) >= 30


@pytest.mark.case(12)
async def test_page_and_run_hold_as_many_events_as_a_stream_does(
    slow_demo, make_slow_peer, monkeypatch
):
    monkeypatch.setitem(story.TURNS, 1, NOISY)
    peer = await make_slow_peer("replica-a")
    direct = []
    async with peer.stream(NOISY, output="per-event") as events:
        direct = [event async for event in events]
    with aimed_at(slow_demo):
        from orchestrator import client

        noisy = {"output": "per-event", "sessions": "shared"}
        run = await runs.create(Configuration.parse(noisy))
        await story.send_turn(run, 1)
        await client.close()
        await runs.close()
    headers = {"Accept-Encoding": "gzip"}
    async with httpx.AsyncClient(base_url=slow_demo.web_url, headers=headers) as http:
        recorded = (await http.get(f"/runs/{run.id}.json")).json()["events"]
        page = await http.get(f"/runs/{run.id}/walk/5/")
    received = [event for event in recorded if event["kind"] == "event-received"]
    assert len(received) == len(direct)
    assert f'data-seq="{recorded[-1]["seq"]}"' in page.text


async def test_half_a_request_keeps_nobody_waiting(demo, make_peer):
    """A client that never ends its body holds its own connection only."""
    address = urlsplit(demo.replicas["replica-a"])
    with socket.create_connection((address.hostname, address.port)) as half:
        half.sendall(b"POST /a2a/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n")
        peer = await make_peer("replica-a")
        answer = await ask(peer.http, RPC, "ListTasks", {})
        assert result(RPC, answer)["tasks"] == []
