from __future__ import annotations

import asyncio
import threading

import pytest
from a2a.types import TaskState
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

from billing_agent.executor import outcome
from billing_agent.executor.config import OutputMode
from tests.billing_agent.executor.conftest import Collected, request, says
from tests.billing_agent.executor.shapes import shapes

PER_EVENT = {"output_mode": OutputMode.PER_EVENT}


class Blocks:
    """A step of an agent that waits for ever, and says when it is in it."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    async def __call__(self, ctx):
        self.entered.set()
        await asyncio.Event().wait()


class Thinks(BaseLlm):
    """A model that first calls a tool, then thinks for ever."""

    entered: list[asyncio.Event] = []
    calls: list[int] = []

    async def generate_content_async(self, llm_request, stream=False):
        self.calls.append(1)
        if len(self.calls) == 1:
            part = types.Part.from_function_call(name="look", args={})
            yield LlmResponse(content=types.Content(role="model", parts=[part]))
            return
        if len(self.calls) == 2:
            self.entered[0].set()
            await asyncio.Event().wait()
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="usable")])
        )


def look() -> str:
    """Look."""
    return "seen"


async def cancelled(task):
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.statement(8, 31)
async def test_cancel_ends_the_run_with_one_canceled(make_executor, queue, registry):
    block = Blocks()
    hooked = []

    async def after(ctx, final):
        hooked.append(final)
        return final

    executor = make_executor(
        [says("one"), block, says("never")], after_execute=after, **PER_EVENT
    )
    running = asyncio.create_task(executor.execute(request(), queue))
    await block.entered.wait()

    await executor.cancel(request(None), queue)
    await cancelled(running)

    assert shapes(queue.events) == ["Task", "WORKING", "artifact(one)", "CANCELED"]
    assert executor._agent.closed == [True]
    assert hooked == []
    assert "task-1" not in registry


@pytest.mark.statement(31)
async def test_cancel_stops_inside_a_model_call_and_the_session_stays_usable(
    make_executor, queue
):
    model = Thinks(model="thinks", entered=[asyncio.Event()], calls=[])
    agent = LlmAgent(name="agent", model=model, tools=[look])
    executor = make_executor(agent, hook=True)
    running = asyncio.create_task(executor.execute(request(), queue))
    await model.entered[0].wait()

    await executor.cancel(request(None), queue)
    await cancelled(running)
    assert shapes(queue.events) == ["Task", "WORKING", "CANCELED"]
    assert len(model.calls) == 2

    again = Collected()
    await executor.execute(request("go on", task_id="task-2"), again)
    assert shapes(again.events)[-2:] == ["artifact(usable)", "COMPLETED"]


@pytest.mark.statement(32)
async def test_nothing_follows_canceled_out_of_a_blocking_section(make_executor, queue):
    entered, leave = asyncio.Event(), threading.Event()

    async def blocking(ctx):
        # Work that cannot be interrupted: cancellation waits for the thread.
        entered.set()
        work = asyncio.ensure_future(asyncio.to_thread(leave.wait, 10))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await work
        return says("too late")

    executor = make_executor([blocking, says("later")], **PER_EVENT)
    running = asyncio.create_task(executor.execute(request(), queue))
    await entered.wait()

    await executor.cancel(request(None), queue)
    leave.set()
    await asyncio.wait({running})

    assert shapes(queue.events) == ["Task", "WORKING", "CANCELED"]


@pytest.mark.statement(33)
async def test_cancel_of_a_task_that_does_not_run_here_is_canceled_only(
    make_executor, queue
):
    await make_executor().cancel(request(None, task_id="other"), queue)

    assert shapes(queue.events) == ["CANCELED"]


@pytest.mark.statement(42)
async def test_only_one_end_reaches_the_queue(make_executor, queue, registry):
    async def end_twice(ctx):
        run = registry.get("task-1")
        ended = outcome.status("task-1", "ctx-41", TaskState.TASK_STATE_FAILED)
        await run.emit(ended)
        await run.emit(ended)
        return says("after the end")

    await make_executor([end_twice], **PER_EVENT).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "FAILED"]


@pytest.mark.statement(45)
async def test_a_run_longer_than_its_timeout_fails_and_is_closed(make_executor, queue):
    executor = make_executor([Blocks(), says("never")], run_timeout=0.3)

    async with asyncio.timeout(10):
        await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "FAILED"]
    assert executor._agent.closed == [True]
    assert "timeout" not in str(queue.events[-1]).lower()
