from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from unittest.mock import AsyncMock

import pytest
from a2a.types import Part, Task, TaskState
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types

from billing_agent.errors import ConversationBusy
from billing_agent.executor.config import ExecutorConfig, OutputMode
from tests.billing_agent.executor.conftest import Collected, request, says
from tests.billing_agent.executor.shapes import artifacts, shapes

PER_EVENT = {"output_mode": OutputMode.PER_EVENT}


def existing_task() -> Task:
    return Task(id="task-1", context_id="ctx-41")


@pytest.mark.statement(1)
async def test_a_request_without_a_message_is_refused_and_leaves_nothing(
    make_executor, queue, registry
):
    with pytest.raises(ValueError, match=r"^Message cannot be null$"):
        await make_executor().execute(request(None), queue)

    assert queue.events == []
    assert len(registry) == 0


@pytest.mark.statement(2)
async def test_a_new_task_is_enqueued_with_its_message_before_working(
    make_executor, queue
):
    context = request("hello")

    await make_executor([says("hi")]).execute(context, queue)

    first = queue.events[0]
    assert shapes(queue.events)[:2] == ["Task", "WORKING"]
    assert first.status.state == TaskState.TASK_STATE_SUBMITTED
    assert list(first.history) == [context.message]
    assert (first.id, first.context_id) == ("task-1", "ctx-41")


@pytest.mark.statement(3)
async def test_an_existing_task_is_not_enqueued_again(make_executor, queue):
    await make_executor([says("hi")]).execute(request(task=existing_task()), queue)

    assert shapes(queue.events)[0] == "WORKING"
    assert "Task" not in shapes(queue.events)


@pytest.mark.statement(4)
async def test_per_event_enqueues_each_event_and_one_end(make_executor, queue):
    await make_executor([says("one"), says("two")], **PER_EVENT).execute(
        request(), queue
    )

    assert shapes(queue.events) == [
        "Task",
        "WORKING",
        "artifact(one)",
        "artifact(two)",
        "COMPLETED",
    ]


@pytest.mark.statement(5)
@pytest.mark.parametrize("mode", list(OutputMode))
async def test_nothing_of_adk_is_on_the_wire(make_executor, queue, mode):
    ids = []

    async def note(ctx):
        ids.extend([ctx.invocation_id, ctx.session.id])
        return says("hi")

    await make_executor([note], output_mode=mode).execute(
        request(metadata={"x-verified-tenant": "acme"}), queue
    )

    last = queue.events[-1]
    assert not last.status.HasField("message")
    assert not last.HasField("metadata")
    wire = "".join(str(event) for event in queue.events)
    for internal in ("adk_user_id", "adk_session_id", "adk_app_name", "invocation"):
        assert internal not in wire
    for internal in ("A2A_USER_", *ids):
        assert internal not in wire


@pytest.mark.statement(6)
@pytest.mark.parametrize("mode", list(OutputMode))
async def test_a_run_without_events_completes(make_executor, queue, mode):
    await make_executor([], output_mode=mode).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "COMPLETED"]


@pytest.mark.statement(7)
async def test_a_second_run_of_a_task_is_refused_and_the_first_completes(
    make_executor, queue
):
    started, go = asyncio.Event(), asyncio.Event()

    async def wait(ctx):
        started.set()
        await go.wait()
        return says("done")

    executor = make_executor([wait])
    first = asyncio.create_task(executor.execute(request(), queue))
    await started.wait()

    second = Collected()
    async with asyncio.timeout(10):
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"^Task task-1 already running$"):
                await executor.execute(request(), second)
    go.set()
    await first

    assert second.events == []
    assert shapes(queue.events) == ["Task", "WORKING", "artifact(done)", "COMPLETED"]


async def _raise(*args):
    raise LookupError("hook")


async def _skip(*args):
    return True


async def _withhold(*args):
    return None


@pytest.mark.statement(8)
@pytest.mark.parametrize(
    ("script", "config", "parts"),
    [
        ([says("hi")], {}, None),
        ([LookupError("run")], {}, None),
        ([says("hi")], {"before_execute": _raise}, None),
        ([says("hi")], {"before_execute": _skip}, None),
        ([says("hi")], {"after_event": _raise}, None),
        ([says("hi")], {"after_execute": _raise}, None),
        ([says("hi")], {"after_execute": _withhold}, None),
        ([says("hi")], {}, [Part()]),
    ],
    ids=[
        "success",
        "failure",
        "before raises",
        "skip",
        "after event raises",
        "after execute raises",
        "end withheld",
        "part not convertible",
    ],
)
async def test_the_registry_is_clean_after_every_end(
    make_executor, queue, registry, script, config, parts
):
    await make_executor(script, **config).execute(request(parts=parts), queue)

    assert "task-1" not in registry
    assert registry.waiting() == []


@pytest.mark.statement(8)
async def test_the_registry_is_clean_when_the_runner_cannot_be_built(
    make_executor, queue, registry, monkeypatch
):
    monkeypatch.setattr("billing_agent.executor.lifecycle.Runner", _no_runner)

    await make_executor([says("hi")]).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "FAILED"]
    assert "task-1" not in registry


def _no_runner(**_):
    raise LookupError("runner")


@pytest.mark.statement(8, 29)
async def test_a_conversation_that_stays_busy_rejects_the_task(
    make_executor, queue, registry
):
    @asynccontextmanager
    async def busy(subject, context_id, wait):
        raise ConversationBusy(context_id, wait)
        yield

    executor = make_executor([says("never")])
    executor._turns.turn = busy

    await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "REJECTED"]
    words = [part.text for part in queue.events[-1].status.message.parts]
    assert words == ["conversation busy"]
    assert "task-1" not in registry


@pytest.mark.statement(8)
async def test_a_part_that_cannot_be_converted_fails_the_task(make_executor, queue):
    await make_executor([says("hi")]).execute(request(parts=[Part()]), queue)

    assert shapes(queue.events) == ["Task", "FAILED"]


@pytest.mark.statement(9)
async def test_a_skip_cancels_and_nothing_else_happens(make_executor, queue, sessions):
    after = AsyncMock()
    executor = make_executor([says("hi")], before_execute=_skip, after_execute=after)

    await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "CANCELED"]
    assert sessions.sessions == {}
    after.assert_not_awaited()


@pytest.mark.statement(10)
async def test_a_raising_before_hook_fails_without_work(make_executor, queue, sessions):
    await make_executor([says("hi")], before_execute=_raise).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "FAILED"]
    assert "error_id: " in queue.events[-1].status.message.parts[0].text
    assert sessions.sessions == {}


@pytest.mark.statement(11)
@pytest.mark.parametrize("method", ["get_session", "create_session"])
async def test_a_failing_session_store_fails_without_work(
    make_executor, queue, monkeypatch, method
):
    monkeypatch.setattr(InMemorySessionService, method, _raise)

    await make_executor([says("hi")]).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "FAILED"]


@pytest.mark.statement(12)
@pytest.mark.parametrize(
    ("mode", "released"),
    [
        (OutputMode.PER_EVENT, ["artifact(one)", "artifact(two)"]),
        (OutputMode.PER_RUN, []),
    ],
)
async def test_a_run_that_raises_keeps_what_it_released(
    make_executor, queue, mode, released
):
    script = [says("one"), says("two"), LookupError("run")]

    await make_executor(script, output_mode=mode).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", *released, "FAILED"]


class Loops(BaseLlm):
    """A model that calls its tool again, for ever."""

    calls: list[int] = []

    async def generate_content_async(self, llm_request, stream=False):
        self.calls.append(1)
        call = types.Part.from_function_call(name="again", args={})
        yield LlmResponse(content=types.Content(role="model", parts=[call]))


def again() -> str:
    """Ask for another round."""
    return "again"


@pytest.mark.statement(13)
async def test_the_twenty_first_model_call_fails_the_run(make_executor, queue):
    model = Loops(model="loops", calls=[])
    agent = LlmAgent(name="agent", model=model, tools=[again])

    await make_executor(agent).execute(request(), queue)

    assert len(model.calls) == 20
    assert shapes(queue.events) == ["Task", "WORKING", "FAILED"]
    assert "limit" not in str(queue.events[-1]).lower()


@pytest.mark.statement(18)
async def test_an_event_without_parts_is_skipped(make_executor, queue):
    hook = AsyncMock(side_effect=lambda ctx, update, event: update)
    empty = Event(author="agent", content=types.Content(role="model", parts=[]))
    script = [Event(author="agent"), empty, says("hi")]

    await make_executor(script, after_event=hook, **PER_EVENT).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "artifact(hi)", "COMPLETED"]
    assert hook.await_count == 1


@pytest.mark.statement(20)
@pytest.mark.parametrize("mode", list(OutputMode))
async def test_an_error_code_closes_the_run_and_stays_inside(
    make_executor, queue, mode
):
    bad = says("partial words", error_code="SAFETY", error_message="blocked words")
    executor = make_executor([bad, says("never")], output_mode=mode)

    await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "FAILED"]
    assert executor._agent.closed == [True]
    wire = "".join(str(event) for event in queue.events)
    assert "SAFETY" not in wire
    assert "blocked" not in wire


@pytest.mark.statement(22)
async def test_after_event_may_change_or_withhold_an_update(make_executor, queue):
    async def redact(ctx, update, event):
        text = update.artifact.parts[0].text
        if text == "secret":
            return None
        update.artifact.parts[0].text = text.upper()
        return update

    script = [says("one"), says("secret"), says("three")]
    await make_executor(script, after_event=redact, **PER_EVENT).execute(
        request(), queue
    )

    assert shapes(queue.events)[2:] == ["artifact(ONE)", "artifact(THREE)", "COMPLETED"]


@pytest.mark.statement(22)
async def test_a_raising_after_event_fails_and_closes_the_run(make_executor, queue):
    executor = make_executor(
        [says("one"), says("two")], after_event=_raise, **PER_EVENT
    )

    await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "FAILED"]
    assert executor._agent.closed == [True]


@pytest.mark.statement(22)
async def test_per_run_withholds_an_answer_that_the_hook_withholds(
    make_executor, queue
):
    async def withhold_two(ctx, update, event):
        return None if update.artifact.parts[0].text == "two" else update

    executor = make_executor([says("one"), says("two")], after_event=withhold_two)

    await executor.execute(request(), queue)

    assert artifacts(queue.events) == []
    assert shapes(queue.events)[-1] == "COMPLETED"


@pytest.mark.statement(23)
async def test_after_execute_may_rewrite_the_end(make_executor, queue):
    async def reject(ctx, final):
        final.status.state = TaskState.TASK_STATE_REJECTED
        return final

    await make_executor([], after_execute=reject).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "REJECTED"]


@pytest.mark.statement(23)
@pytest.mark.parametrize(
    ("hook", "level"), [(_withhold, logging.WARNING), (_raise, logging.ERROR)]
)
async def test_an_end_that_is_withheld_is_logged_once(
    make_executor, queue, caplog, hook, level
):
    await make_executor([says("hi")], after_execute=hook).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "artifact(hi)"]
    ours = [row for row in caplog.records if row.name.startswith("billing_agent")]
    assert [row.levelno for row in ours] == [level]


def test_a_run_streams_nothing_and_is_capped_unless_configured():
    config = ExecutorConfig()

    assert config.run_config.streaming_mode.value is None
    assert config.run_config.max_llm_calls == 20
    assert config.output_mode is OutputMode.PER_RUN
    assert (config.before_execute, config.after_event, config.after_execute) == (
        None,
        None,
        None,
    )
