"""What the continuity fix depends on; each test fails if one of it changes."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import Part, Task, TaskState
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.sessions import InMemorySessionService
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from billing_agent import facts
from billing_agent.executor.config import Lookup
from billing_agent.stores.scope import ScopedSessionService
from tests.billing_agent.executor.conftest import APP, Collected, request, says
from tests.billing_agent.executor.shapes import shapes

USER = "A2A_USER_ctx-41"


@pytest.fixture
def announced():
    """The facts announced during the test, in order."""
    seen = []

    async def receive(fact, source, **_):
        seen.append((fact, source))

    facts.announced.connect(receive)
    yield seen
    facts.announced.disconnect(receive)


async def stored(sessions, subject="workshop"):
    scoped = ScopedSessionService(sessions, subject)
    return (await scoped.list_sessions(app_name=APP)).sessions


def counts(seen: list[int]):
    """Return an agent step that notes how many events its session holds."""

    async def count(ctx):
        seen.append(len(ctx.session.events))
        return says("noted")

    return count


@pytest.mark.statement(27)
async def test_the_adk_user_is_the_context_also_for_an_authenticated_caller(
    make_executor, queue, sessions
):
    await make_executor([says("hi")], hook=True).execute(request(), queue)

    (session,) = await stored(sessions)
    assert (session.user_id, session.id) == (USER, "ctx-41")


@pytest.mark.statement(27)
async def test_another_subject_has_another_session_of_the_same_context(
    make_executor, sessions
):
    seen: list[int] = []
    executor = make_executor([counts(seen)], hook=True)

    await executor.execute(request(subject="one"), Collected())
    await executor.execute(request(subject="two", task_id="t2"), Collected())

    assert seen == [1, 1]
    assert [s.user_id for s in await stored(sessions, "one")] == [USER]
    assert [s.user_id for s in await stored(sessions, "two")] == [USER]


@pytest.mark.statement(28)
@pytest.mark.parametrize(
    ("hook", "lookup", "remembers"),
    [
        (True, Lookup.CONTEXT_ID, True),
        (False, Lookup.CONTEXT_ID, False),
        (True, Lookup.CREATE_UNDER_CONTEXT_ID, True),
        (False, Lookup.CREATE_UNDER_CONTEXT_ID, True),
    ],
)
async def test_the_second_message_remembers_by_hook_or_by_the_fixed_lookup(
    make_executor, sessions, hook, lookup, remembers
):
    seen: list[int] = []
    executor = make_executor([counts(seen)], hook=hook, lookup=lookup)

    await executor.execute(request("first", task_id="t1"), Collected())
    await executor.execute(request("second", task_id="t2"), Collected())

    held = await stored(sessions)
    if remembers:
        assert [s.id for s in held] == ["ctx-41"]
        assert seen == [1, 3]
    else:
        assert len(held) == 2
        assert "ctx-41" not in {s.id for s in held}
        assert seen == [1, 1]


@pytest.mark.statement(28)
async def test_the_hook_looks_up_and_creates_before_the_lookup(
    make_executor, queue, announced
):
    await make_executor([says("hi")], hook=True).execute(request(), queue)

    sessions = [
        (type(fact).__name__, fact.by)
        for fact, _ in announced
        if isinstance(fact, facts.SessionLookedUp | facts.SessionCreated)
    ]
    assert sessions == [
        ("SessionLookedUp", "hook"),
        ("SessionCreated", "hook"),
        ("SessionLookedUp", "lookup"),
    ]
    asked = [f.asked_for for f, _ in announced if isinstance(f, facts.SessionLookedUp)]
    assert asked == ["ctx-41", "ctx-41"]


@pytest.mark.statement(29)
@pytest.mark.parametrize("messages", [2, 50])
async def test_concurrent_first_messages_share_one_session_in_turns(
    make_executor, sessions, messages
):
    seen: list[int] = []
    executor = make_executor([counts(seen)], hook=True)
    queues = [Collected() for _ in range(messages)]

    await asyncio.gather(
        *(
            executor.execute(request(f"m{n}", task_id=f"t{n}"), queue)
            for n, queue in enumerate(queues)
        )
    )

    assert {shapes(queue.events)[-1] for queue in queues} == {"COMPLETED"}
    assert [s.id for s in await stored(sessions)] == ["ctx-41"]
    assert seen == list(range(1, 2 * messages, 2))


@pytest.mark.statement(29)
@pytest.mark.parametrize(
    ("hook", "lookup"),
    [(True, Lookup.CONTEXT_ID), (False, Lookup.CREATE_UNDER_CONTEXT_ID)],
)
async def test_losing_the_race_to_create_gets_the_winners_session(
    make_executor, queue, sessions, monkeypatch, hook, lookup
):
    create = InMemorySessionService.create_session

    async def lose_once(self, **names):
        monkeypatch.setattr(InMemorySessionService, "create_session", create)
        await create(self, **names)
        return await create(self, **names)

    monkeypatch.setattr(InMemorySessionService, "create_session", lose_once)

    executor = make_executor([says("hi")], hook=hook, lookup=lookup)
    await executor.execute(request(), queue)

    assert shapes(queue.events)[-1] == "COMPLETED"
    assert [session.id for session in await stored(sessions)] == ["ctx-41"]


@pytest.mark.statement(30)
async def test_request_metadata_reaches_the_run_with_whole_numbers(
    make_executor, queue
):
    seen = []

    async def look(ctx):
        seen.append(ctx.run_config.custom_metadata)
        return says("ok")

    metadata = {"x-verified-tenant": "acme", "invoice": 8812, "deep": [{"n": 2.5}]}
    await make_executor([look]).execute(request(metadata=metadata), queue)

    (custom,) = seen
    assert custom["a2a_metadata"] == metadata
    assert isinstance(custom["a2a_metadata"]["invoice"], int)


@pytest.mark.statement(30)
async def test_without_metadata_the_key_is_absent_and_configured_metadata_stays(
    make_executor, queue
):
    from google.adk.agents.run_config import RunConfig

    seen = []

    async def look(ctx):
        seen.append(ctx.run_config.custom_metadata)
        return says("ok")

    config = RunConfig(custom_metadata={"team": "billing"})
    executor = make_executor([look], run_config=config)
    await executor.execute(request(), queue)
    await executor.execute(request(metadata={"k": "v"}, task_id="t2"), Collected())

    assert seen == [
        {"team": "billing"},
        {"team": "billing", "a2a_metadata": {"k": "v"}},
    ]


def ask_user(question: str) -> None:
    """Ask the user."""


class Asks(BaseLlm):
    """A model that asks once, then repeats what it was told."""

    requests: list = []

    async def generate_content_async(self, llm_request, stream=False):
        self.requests.append(llm_request.contents)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text=f"heard {last.function_response.response}")
        elif last.text == "plain":
            part = types.Part(text="heard plainly")
        else:
            # With an id of its own: ADK keeps back the ids that it makes up.
            args = {"question": "Which one?"}
            asked = types.FunctionCall(id="asked-1", name="ask_user", args=args)
            part = types.Part(function_call=asked)
        parts = [types.Part(text="internal remark"), part]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def asking_agent() -> LlmAgent:
    model = Asks(model="asks", requests=[])
    tool = LongRunningFunctionTool(ask_user)
    return LlmAgent(name="agent", model=model, tools=[tool])


def waiting_task() -> Task:
    task = Task(id="task-1", context_id="ctx-41")
    task.status.state = TaskState.TASK_STATE_INPUT_REQUIRED
    return task


@pytest.mark.statement(36)
@pytest.mark.parametrize("mode", ["per-run", "per-event"])
async def test_a_long_running_question_ends_the_run_as_input_required(
    make_executor, queue, mode
):
    from billing_agent.executor.config import OutputMode

    executor = make_executor(asking_agent(), output_mode=OutputMode(mode))
    await executor.execute(request(), queue)

    assert shapes(queue.events) == ["Task", "WORKING", "INPUT_REQUIRED"]
    question = queue.events[-1].status.message
    assert [part.text for part in question.parts] == ["Which one?"]
    assert "internal remark" not in "".join(str(event) for event in queue.events)


@pytest.mark.statement(37)
async def test_the_answer_is_delivered_as_the_response_to_the_question(make_executor):
    agent = asking_agent()
    executor = make_executor(agent, hook=True)
    await executor.execute(request("hello"), Collected())
    queue = Collected()

    await executor.execute(request("the compute line", task=waiting_task()), queue)

    contents = agent.model.requests[-1]
    called = contents[-2].parts[-1].function_call
    answered = contents[-1].parts[0].function_response
    assert answered.id == called.id == "asked-1"
    assert answered.response == {"answer": "the compute line"}
    assert shapes(queue.events)[-1] == "COMPLETED"
    assert queue.events[-1].task_id == "task-1"


@pytest.mark.statement(37)
async def test_a_new_task_first_closes_a_question_nobody_answered(
    make_executor, sessions
):
    agent = asking_agent()
    executor = make_executor(agent, hook=True)
    await executor.execute(request("hello"), Collected())
    queue = Collected()

    await executor.execute(request("plain", task_id="task-2"), queue)

    session = await ScopedSessionService(sessions, "workshop").get_session(
        app_name=APP, user_id=USER, session_id="ctx-41"
    )
    responses = [r for event in session.events for r in event.get_function_responses()]
    assert [response.response for response in responses] == [{"status": "cancelled"}]
    assert shapes(queue.events)[-1] == "COMPLETED"


@pytest.mark.statement(37)
async def test_an_answer_without_the_question_in_the_session_is_plain_text(
    make_executor,
):
    agent = asking_agent()
    executor = make_executor(agent)
    await executor.execute(request("hello"), Collected())
    queue = Collected()

    parts = [Part(text="the compute line")]
    await executor.execute(request(parts=parts, task=waiting_task()), queue)

    assert agent.model.requests[-1][-1].parts[0].text == "the compute line"
    assert shapes(queue.events)[-1] == "INPUT_REQUIRED"
