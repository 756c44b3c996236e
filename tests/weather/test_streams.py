"""What a stream adds up to: the stored task, and what a blocking send returns."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager

import pytest

from tests.child import Child
from tests.peer import Peer, state, texts, token
from tests.ports import free_port
from tests.weather.folded import ends, fold

pytestmark = [pytest.mark.processes, pytest.mark.case(4)]

# Two model calls and a tool; a question and its answer.
SHOW = "show me invoice 8812"
QUESTION = "Why was invoice 8812 higher than last month?"
LINE = "The compute line."


async def _frames(peer, text, **options):
    async with peer.stream(text, **options) as events:
        return [event async for event in events]


def _once(text, task):
    """Return whether the task says a text in one part, and in one part only."""
    return sum(text in said for said in texts(task)) == 1


@pytest.fixture(params=["replica-b", "router"])
async def peer(request, make_peer):
    return await make_peer(request.param)


@pytest.mark.statement(4, 14, 15)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
async def test_frames_fold_into_the_stored_task_and_the_unary_one(peer, output):
    frames = await _frames(peer, SHOW, output=output)

    folded = fold(frames)
    stored = await peer.get(folded["id"])
    unary = await peer.send(SHOW, output=output)
    assert ends(frames) == [len(frames) - 1]
    assert state(folded) == state(stored) == state(unary) == "COMPLETED"
    assert folded["artifacts"] == stored["artifacts"]
    assert texts(folded) == texts(unary)
    assert _once("Invoice 8812", folded)
    if output == "per-run":
        assert len(folded["artifacts"]) == 1


@pytest.mark.statement(36, 37)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
async def test_a_question_and_its_answer_stream_as_they_are_stored(peer, output):
    asked = await _frames(peer, QUESTION, output=output)
    task = fold(asked)
    assert ends(asked) == [len(asked) - 1]
    assert state(task) == "INPUT_REQUIRED"
    assert await peer.get(task["id"]) | {"history": None} == task | {"history": None}

    answered = await _frames(peer, LINE, output=output, task_id=task["id"])

    folded = fold([{"task": task}, *answered])
    stored = await peer.get(task["id"])
    assert ends(answered) == [len(answered) - 1]
    assert state(folded) == state(stored) == "COMPLETED"
    assert texts(folded) == texts(stored)
    assert _once("1,055.00", folded)


@contextmanager
def streaming_replica(demo, output):
    """Run a replica with a streaming model beside the demo's; yield its address."""
    port = free_port()
    script = "tests/weather/streaming_replica.py"
    environment = {**os.environ, **demo.environment}
    with Child(script, "replica-b", str(port), output, **environment) as child:
        child.expect("ready")
        yield f"http://127.0.0.1:{port}"


@pytest.mark.statement(14, 16)
@pytest.mark.parametrize("output", ["per-run", "per-event"])
async def test_chunks_of_a_streaming_model_fold_into_the_answer_once(demo, output):
    with streaming_replica(demo, output) as address:
        peer = Peer(address, await token(demo, f"chunks-{secrets.token_hex(4)}"))
        frames = await _frames(peer, SHOW)
        folded = fold(frames)
        stored = await peer.get(folded["id"])
        unary = await peer.send(SHOW)
        await peer.http.aclose()

    appended = [f for f in frames if f.get("artifactUpdate", {}).get("append")]
    assert bool(appended) is (output == "per-event")
    assert ends(frames) == [len(frames) - 1]
    assert folded["artifacts"] == stored["artifacts"]
    assert texts(folded) == texts(unary)
    assert _once("Invoice 8812", folded)
