"""Messages to a task that works, or that somebody else answers at the same moment."""

from __future__ import annotations

import asyncio
import re
import secrets
from contextlib import asynccontextmanager

import pytest
from a2a.types import TaskState
from a2a.utils.errors import UnsupportedOperationError
from psycopg import OperationalError

from billing_agent.executor.outcome import status, submitted
from billing_agent.executor.progress import Progress
from tests.billing_agent.contract.watch import model_calls, until
from tests.billing_agent.executor.conftest import (  # noqa: F401
    Collected,
    make_executor,
    registry,
    request,
    says,
    sessions,
)
from tests.peer import Refused, state
from tests.weather.stored import said, session_events

AUDIT = "audit the last 5 invoices"
QUESTION = "Why was invoice 8812 higher than last month?"
LINE = "The compute line."
FAILED = r"^Agent execution failed\. \(error_id: [0-9a-f]{12}\)$"


@pytest.fixture
def subject():
    return f"follow-{secrets.token_hex(4)}"


@pytest.fixture
async def replicas(make_slow_peer, subject):
    """A and B, by name."""
    names = ("replica-a", "replica-b")
    return {name: await make_slow_peer(name, subject) for name in names}


async def _sent(peer, mode, text, **options):
    """Send in one of the three ways; return the task that is told at last."""
    if mode != "stream":
        return await peer.send(text, now=mode == "now", **options)
    async with peer.stream(text, **options) as events:
        return [event async for event in events]


@pytest.mark.processes
@pytest.mark.statement(39)
@pytest.mark.parametrize("mode", ["blocking", "now", "stream"])
@pytest.mark.parametrize("where", ["replica-a", "replica-b"])
async def test_a_message_to_a_task_that_ends_meanwhile_is_refused_not_lost(
    slow_demo, replicas, subject, where, mode
):
    task = await replicas["replica-b"].send(AUDIT, context_id="ctx-41", now=True)
    await until(lambda: model_calls(slow_demo, task["id"]))

    with pytest.raises(Refused) as refused:
        await _sent(replicas[where], mode, "And now?", task_id=task["id"])

    assert refused.value.code == -32004
    done = await replicas[where].until(task["id"])
    assert state(done) == "COMPLETED"
    assert "And now?" not in str(done["history"])
    events = await session_events(slow_demo, subject, "ctx-41")
    assert "And now?" not in said(events)


@pytest.mark.processes
@pytest.mark.statement(37)
@pytest.mark.parametrize("mode", ["blocking", "now", "stream"])
@pytest.mark.parametrize("where", ["replica-a", "replica-b"])
async def test_a_message_to_a_task_that_asks_meanwhile_is_the_answer(
    replicas, where, mode
):
    task = await replicas["replica-b"].send(QUESTION, context_id="ctx-41", now=True)

    await _sent(replicas[where], mode, LINE, task_id=task["id"])

    done = await replicas["replica-b"].until(task["id"], "COMPLETED")
    assert LINE in str(done["history"])


@pytest.mark.processes
@pytest.mark.statement(39)
@pytest.mark.parametrize("mode", ["blocking", "now", "stream"])
@pytest.mark.parametrize("second_on", ["replica-a", "replica-b"])
async def test_of_two_answers_at_once_one_is_taken_and_one_refused(
    slow_demo, replicas, subject, second_on, mode
):
    b = replicas["replica-b"]
    asked = await b.send(QUESTION, context_id="ctx-41")
    asked = await b.until(asked["id"], "INPUT_REQUIRED")

    answers = await asyncio.gather(
        _sent(b, mode, "The compute line, please.", task_id=asked["id"]),
        _sent(replicas[second_on], mode, "The storage line.", task_id=asked["id"]),
        return_exceptions=True,
    )

    (refused,) = [answer for answer in answers if isinstance(answer, Exception)]
    assert isinstance(refused, Refused)
    assert refused.code == -32004
    done = await b.until(asked["id"], "COMPLETED")
    heard = said(await session_events(slow_demo, subject, "ctx-41"))
    for text, answer in zip(("compute", "storage"), answers, strict=True):
        taken = answer is not refused
        assert (f"The {text} line" in heard) is taken
        assert (f"The {text} line" in str(done["history"])) is taken


class Stored:
    """A task store that holds one task in a state."""

    def __init__(self, name):
        message = request().message
        task = submitted("task-1", "ctx-41", message)
        task.status.CopyFrom(status("task-1", "ctx-41", TaskState.Value(name)).status)
        self.task, self.version = task, 1

    async def get(self, task_id, context):
        return self


@pytest.mark.statement(39)
async def test_a_task_that_ended_while_its_turn_was_waited_for_runs_nothing(
    make_executor,  # noqa: F811
    registry,  # noqa: F811
):
    executor = make_executor([says("never said")])
    executor._progress = Progress(Stored("TASK_STATE_COMPLETED"), None)
    queue = Collected()
    parked = Stored("TASK_STATE_INPUT_REQUIRED").task

    with pytest.raises(UnsupportedOperationError):
        await executor.execute(request(task=parked), queue)

    assert queue.events == []
    assert len(registry) == 0


@pytest.mark.statement(24)
async def test_a_turn_that_cannot_be_taken_fails_opaquely(make_executor, registry):  # noqa: F811
    class Away:
        @asynccontextmanager
        async def turn(self, subject, context_id, wait):
            raise OperationalError("SELECT pg_try_advisory_lock")
            yield

    executor = make_executor([says("never said")])
    executor._turns = Away()
    queue = Collected()

    await executor.execute(request(), queue)

    first, failed = queue.events
    assert first.status.state == TaskState.TASK_STATE_SUBMITTED
    assert failed.status.state == TaskState.TASK_STATE_FAILED
    assert re.match(FAILED, failed.status.message.parts[0].text)
    assert len(registry) == 0
