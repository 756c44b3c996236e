"""One turn of a conversation: the hook, the session, the run, the final status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from a2a.server.agent_execution import RequestContext
from a2a.types import Message, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.memory import BaseMemoryService
from google.adk.runners import Runner
from google.genai import types

from billing_agent import facts
from billing_agent.executor import outcome, pending
from billing_agent.executor.config import ExecutorConfig, Lookup
from billing_agent.executor.conversation import Conversation
from billing_agent.executor.output import output
from billing_agent.executor.parts import to_content, whole
from billing_agent.executor.registry import Run

logger = logging.getLogger(__name__)

METADATA_KEY = "a2a_metadata"


class AgentReportedError(Exception):
    """The model ended with an error code; both values stay in the log."""

    def __init__(self, code: str, text: str | None) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


@dataclass(frozen=True, slots=True)
class Turn:
    """Works on one message while the conversation is held.

    Args:
        context: the request.
        run: where events go.
        talk: the conversation, within the caller's scope.
        make_runner: builds ADK's runner over the same session service.
        config: the executor's.
        memory: the runner's memory service, if the agent recalls.
    """

    context: RequestContext
    run: Run
    talk: Conversation
    make_runner: Callable[[], Runner]
    config: ExecutorConfig
    memory: BaseMemoryService | None = None

    async def take(self) -> bool:
        """Run the agent and enqueue the final status; return whether it asks back."""
        try:
            async with asyncio.timeout(self.config.run_timeout):
                content = to_content(self.context.message or Message())
                if await self._skipped():
                    await move(self.run, TaskState.TASK_STATE_CANCELED)
                    return False
                asked = await self._run(content)
        except Exception as error:
            failure = outcome.Failure(error)
            failure.log()
            final = failure.status(self.run.task_id, self.run.context_id)
        else:
            state = TaskState.TASK_STATE_COMPLETED
            if asked is not None:
                state = TaskState.TASK_STATE_INPUT_REQUIRED
            final = self.run.status(state, asked or "")
        await self._finish(final)
        return final.status.state == TaskState.TASK_STATE_INPUT_REQUIRED

    async def _skipped(self) -> bool:
        hook = self.config.before_execute
        return await hook(self.context) if hook else False

    async def _run(self, content: types.Content) -> str | None:
        """Run the agent; return the question it ends with, if it asks one."""
        runner = self.make_runner()
        session_id, message = await self._prepare(content)
        await move(self.run, TaskState.TASK_STATE_WORKING)
        leaving = output(self.config.output_mode, self.run.task_id, self.run.context_id)
        asked: str | None = None
        answers: list[Event] = []
        events = runner.run_async(
            user_id=self.talk.user_id,
            session_id=session_id,
            new_message=message,
            run_config=self._run_config(),
        )
        async with aclosing(events) as stream:
            async for event in stream:
                if event.error_code:
                    raise AgentReportedError(event.error_code, event.error_message)
                if event.get_function_calls():
                    asked = pending.question(event)
                elif event.is_final_response():
                    answers.append(event)
                if event.content and event.content.parts:
                    asks = bool(event.long_running_tool_ids)
                    update = None if asks else leaving.convert(event)
                    update = await self._hooked(update, event)
                    await self._release(leaving.keep(event, update))
        await self._release(leaving.end())
        # While the artifact is stored; before the end, so that the next turn recalls.
        await self._remember(session_id, answers)
        return asked

    async def _prepare(self, content: types.Content) -> tuple[str, types.Content]:
        """Resolve the session and match the message to a question it answers."""
        session = await self.talk.look_up()
        if session is None:
            fixed = self.config.lookup is Lookup.CREATE_UNDER_CONTEXT_ID
            session_id = self.talk.context_id if fixed else None
            session = await self.talk.create(session_id)
        waiting = pending.open_calls(session.events)
        follows_up = self.context.current_task is not None
        if follows_up and waiting and waiting[-1].long_running:
            content = pending.answer(waiting.pop(), content)
        await pending.close(self.talk.service, session, waiting)
        self.talk.service.hand_over(session)
        return session.id, content

    async def _remember(self, session_id: str, answers: list[Event]) -> None:
        """Keep what was answered for later conversations to recall."""
        if self.memory is not None and answers:
            await self.memory.add_events_to_memory(
                app_name=self.talk.app_name,
                user_id=self.talk.user_id,
                events=answers,
                session_id=session_id,
            )

    def _run_config(self) -> RunConfig:
        config = self.config.run_config
        metadata: dict[str, Any] = whole(self.context.metadata)
        if not metadata:
            return config
        custom = {**(config.custom_metadata or {}), METADATA_KEY: metadata}
        return config.model_copy(update={"custom_metadata": custom})

    async def _hooked(
        self, update: TaskArtifactUpdateEvent | None, event: Event
    ) -> TaskArtifactUpdateEvent | None:
        hook = self.config.after_event
        return await hook(self.context, update, event) if hook else update

    async def _release(self, update: TaskArtifactUpdateEvent | None) -> None:
        if update is None or self.run.closed:
            return
        texts = tuple(part.text for part in update.artifact.parts if part.text)
        artifact_id = update.artifact.artifact_id
        await facts.announce(
            facts.ArtifactReleased(
                artifact_id, update.append, update.last_chunk, texts, update.ByteSize()
            )
        )
        await self.run.emit(update)

    async def _finish(self, final: TaskStatusUpdateEvent) -> None:
        hook = self.config.after_execute
        rewritten: TaskStatusUpdateEvent | None = final
        task_id = self.run.task_id
        if hook:
            try:
                rewritten = await hook(self.context, final)
            except Exception:
                logger.exception("after_execute failed; task %s has no end", task_id)
                return
        if rewritten is None:
            logger.warning("after_execute withheld the end of task %s", task_id)
            return
        await announce_and_emit(self.run, rewritten)


async def move(run: Run, state: TaskState, text: str = "") -> None:
    """Announce and enqueue a status of a run; nothing once its end is enqueued."""
    await announce_and_emit(run, run.status(state, text))


async def announce_and_emit(run: Run, event: TaskStatusUpdateEvent) -> None:
    """Announce a status event, then enqueue it, unless the run has ended."""
    if run.closed:
        return
    await announce_state(event)
    await run.emit(event)


async def announce_state(event: TaskStatusUpdateEvent) -> None:
    """Announce the state that a status event moves its task to."""
    parts = event.status.message.parts
    name = TaskState.Name(event.status.state)
    await facts.announce(facts.TaskStateChanged(name, parts[0].text if parts else ""))
