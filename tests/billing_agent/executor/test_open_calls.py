"""Calls that a run leaves without a response, and what the next turn makes of them."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from a2a.types import Task, TaskState
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from tests.billing_agent.executor.conftest import Collected, request, says
from tests.billing_agent.executor.shapes import shapes
from tests.billing_agent.executor.test_cancel import cancelled
from tests.billing_agent.executor.test_continuity import ask_user

_NUMBERS = count()


class Plays(BaseLlm):
    """A model that answers with the given parts, one list for each call."""

    script: list[list[types.Part]] = []
    requests: list[list[types.Content]] = []

    async def generate_content_async(self, llm_request, stream=False):
        self.requests.append(list(llm_request.contents))
        parts = self.script[len(self.requests) - 1]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


class Blocks:
    """A tool that never returns; ``entered`` counts its calls."""

    def __init__(self) -> None:
        self.entered = asyncio.Semaphore(0)

    async def look(self) -> str:
        """Look."""
        self.entered.release()
        await asyncio.Event().wait()
        return "never"


def call(name, **args):
    # With an id of the model's own: ADK keeps back the ids that it makes up.
    call_id = f"call-{next(_NUMBERS)}"
    called = types.FunctionCall(id=call_id, name=name, args=args)
    return types.Part(function_call=called)


def text(words):
    return types.Part(text=words)


def agent_of(*script, tools=()):
    model = Plays(model="plays", script=list(script), requests=[])
    asking = LongRunningFunctionTool(ask_user)
    return LlmAgent(name="agent", model=model, tools=[asking, *tools])


def parked(task_id):
    task = Task(id=task_id, context_id="ctx-41")
    task.status.state = TaskState.TASK_STATE_INPUT_REQUIRED
    return task


def pairs(contents):
    """Return the calls of a model's request, each with the response it has."""
    parts = [part for content in contents for part in content.parts]
    answered = {
        part.function_response.id: part.function_response.response
        for part in parts
        if part.function_response
    }
    calls = [part.function_call for part in parts if part.function_call]
    return [(call.name, answered.get(call.id)) for call in calls]


async def _cut_off(executor, tool, calls, **options):
    """Start a run and cancel it inside its tools."""
    running = asyncio.create_task(executor.execute(request(**options), Collected()))
    async with asyncio.timeout(10):
        for _ in range(calls):
            await tool.entered.acquire()
    await executor.cancel(request(None, task_id=options["task_id"]), Collected())
    await cancelled(running)


CANCELLED = {"status": "cancelled"}


@pytest.mark.statement(31, 37)
@pytest.mark.parametrize("calls", [1, 2])
async def test_calls_cut_off_by_a_cancel_are_closed_before_the_next_turn(
    make_executor, calls
):
    tool = Blocks()
    agent = agent_of(
        [call("look") for _ in range(calls)], [text("usable")], tools=[tool.look]
    )
    executor = make_executor(agent, hook=True)
    await _cut_off(executor, tool, calls, task_id="task-1")
    queue = Collected()

    await executor.execute(request("go on", task_id="task-2"), queue)

    assert shapes(queue.events)[-2:] == ["artifact(usable)", "COMPLETED"]
    assert pairs(agent.model.requests[-1]) == [("look", CANCELLED)] * calls


@pytest.mark.statement(37)
async def test_an_answer_is_never_the_response_to_a_call_that_was_cut_off(
    make_executor,
):
    tool = Blocks()
    script = [[call("ask_user", question="Which?")], [call("look")], [text("done")]]
    agent = agent_of(*script, tools=[tool.look])
    executor = make_executor(agent, hook=True)
    await executor.execute(request(task_id="task-1"), Collected())
    await _cut_off(executor, tool, 1, task_id="task-2")

    answer = request("compute", task_id="task-1", task=parked("task-1"))
    await executor.execute(answer, Collected())

    seen = agent.model.requests[-1]
    assert pairs(seen) == [("ask_user", CANCELLED), ("look", CANCELLED)]
    assert seen[-1].parts[-1].text == "compute"


@pytest.mark.statement(36, 37)
async def test_of_two_questions_at_once_the_one_that_is_shown_is_answered(
    make_executor, queue
):
    both = [call("ask_user", question="Which?"), call("ask_user", question="When?")]
    agent = agent_of(both, [text("done")])
    executor = make_executor(agent, hook=True)

    await executor.execute(request(), queue)
    await executor.execute(request("this", task=parked("task-1")), Collected())

    shown = queue.events[-1].status.message.parts[0].text
    seen = agent.model.requests[-1]
    asked = [p.function_call for c in seen for p in c.parts if p.function_call]
    answers = dict(zip([c.args["question"] for c in asked], pairs(seen), strict=True))
    assert answers.pop(shown) == ("ask_user", {"answer": "this"})
    assert [*answers.values()] == [("ask_user", CANCELLED)]


@pytest.mark.statement(36)
async def test_a_question_before_the_last_call_is_not_pending(make_executor, queue):
    asked = Event(
        author="agent",
        content=types.Content(role="model", parts=[call("ask_user", question="Eh?")]),
    )
    asked.long_running_tool_ids = {asked.get_function_calls()[0].id}
    looked = Event(
        author="agent", content=types.Content(role="model", parts=[call("look")])
    )

    await make_executor([asked, looked, says("done")]).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "artifact(done)", "COMPLETED"]


@pytest.mark.statement(36)
async def test_an_ordinary_call_is_no_question(make_executor, queue):
    looked = Event(
        author="agent", content=types.Content(role="model", parts=[call("look")])
    )

    await make_executor([looked]).execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "COMPLETED"]


@pytest.mark.statement(33)
async def test_a_question_parked_here_is_canceled_and_let_go(
    make_executor, queue, registry
):
    executor = make_executor(agent_of([call("ask_user", question="Which?")]))
    await executor.execute(request(), queue)
    assert registry.waiting() == ["task-1"]

    await executor.cancel(request(None), queue)

    assert shapes(queue.events)[-2:] == ["INPUT_REQUIRED", "CANCELED"]
    assert registry.waiting() == []
