"""The executor: the life of one message, from the queue's first event to its last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Protocol
from weakref import WeakKeyDictionary

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import Message, TaskState
from a2a.utils.errors import A2AError
from google.adk.agents import BaseAgent
from google.adk.memory import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService
from psycopg import OperationalError

from billing_agent import facts
from billing_agent.errors import ConversationBusy
from billing_agent.executor import outcome
from billing_agent.executor.config import BeforeExecute, ExecutorConfig
from billing_agent.executor.conversation import Conversation
from billing_agent.executor.progress import Progress
from billing_agent.executor.registry import Run, RunRegistry
from billing_agent.executor.turn import Turn, announce_and_emit, announce_state, move
from billing_agent.stores.scope import ScopedSessionService

logger = logging.getLogger(__name__)

# Seconds.
END_WAIT = 2.0


class Turns(Protocol):
    """One turn at a time per caller and conversation, over all replicas."""

    def turn(
        self, subject: str, context_id: str, wait: float
    ) -> AbstractAsyncContextManager[None]:
        """Hold the conversation's turn; ``ConversationBusy`` after ``wait`` seconds."""
        ...


class Executor(AgentExecutor):
    """Runs an ADK agent for A2A messages.

    What it enqueues, in order: for a new task the task itself (SUBMITTED), then
    WORKING, artifact updates as the output mode says, and exactly one final status.
    Only a hook that returns nothing or raises can take the final status away.
    Exceptions of the agent never leave: the caller gets an error id, the log the rest.

    Args:
        agent: the root agent.
        app_name: ADK's app name.
        sessions: session service for all callers; each run sees its caller's scope.
        store: which store that is.
        registry: runs of this process, shared by all its executors.
        turns: serialises the turns of a conversation.
        replica: this replica's name, for the facts.
        config: see ``ExecutorConfig``.
        memory: gives a request's memory service, if the agent recalls.
        progress: tells whether a follow-up's task is still open when its turn has
            come; it is taken to be without it.
    """

    def __init__(
        self,
        *,
        agent: BaseAgent,
        app_name: str,
        sessions: BaseSessionService,
        store: facts.Store,
        registry: RunRegistry,
        turns: Turns,
        replica: str,
        config: ExecutorConfig,
        memory: Callable[[RequestContext], BaseMemoryService] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._agent = agent
        self._app_name = app_name
        self._sessions = sessions
        self._store = store
        self._registry = registry
        self._turns = turns
        self._replica = replica
        self._config = config
        self._memory = memory
        self._progress = progress
        # A hook and the run after it have one.
        self._talks: WeakKeyDictionary[RequestContext, Conversation]
        self._talks = WeakKeyDictionary()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one message until its run has ended.

        Raises:
            ValueError: the request has no message; nothing was enqueued.
            RuntimeError: the task runs here already; that run goes on.
            UnsupportedOperationError: the task ended while its turn was waited for.
            asyncio.CancelledError: the run was cancelled.
        """
        if context.message is None:
            raise ValueError("Message cannot be null")
        origin = self._origin(context)
        channel = self._config.cancel_channel
        run = Run(*_ids(context), event_queue, origin, hears_channel=channel)
        self._registry.register(run)
        parked = False
        try:
            facts.origin.set(origin)
            if context.current_task is None:
                await self._submit(run, context.message)
            parked = await self._take_turn(context, run)
        finally:
            self._registry.release(run, parked=parked)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Stop the task's run if it is here; enqueue CANCELED in any case."""
        task_id, context_id = _ids(context)
        canceled = outcome.status(task_id, context_id, TaskState.TASK_STATE_CANCELED)
        facts.origin.set(self._origin(context))
        await announce_state(canceled)
        run = self._registry.get(task_id)
        if run is None:
            self._registry.take_parked(task_id)
            await event_queue.enqueue_event(canceled)
            return
        await facts.announce(facts.CancelHeard("request"))
        await run.stop(canceled)

    def with_hook(self, before_execute: BeforeExecute) -> Executor:
        """Return the same executor with a hook before each run."""
        changed = copy(self)
        changed._config = replace(self._config, before_execute=before_execute)
        return changed

    def conversation(self, context: RequestContext) -> Conversation:
        """Return the conversation of a request, within its caller's scope."""
        scoped = ScopedSessionService(self._sessions, _subject(context))
        talk = Conversation(scoped, self._store, self._app_name, _ids(context)[1])
        return self._talks.setdefault(context, talk)

    async def _submit(self, run: Run, message: Message) -> None:
        await facts.announce(facts.TaskStateChanged("TASK_STATE_SUBMITTED"))
        await run.emit(outcome.submitted(run.task_id, run.context_id, message))

    async def _take_turn(self, context: RequestContext, run: Run) -> bool:
        """Work once the conversation is free; return whether the agent asks back."""
        wait = self._config.turn_wait
        talk = self.conversation(context)
        memory = self._memory(context) if self._memory else None
        make_runner = partial(self._runner, talk, memory)
        turn = Turn(context, run, talk, make_runner, self._config, memory)
        try:
            async with self._turns.turn(_subject(context), run.context_id, wait):
                await self._check_open(context)
                parked = await turn.take()
                await self._leave_word(context)
                return parked
        except ConversationBusy as busy:
            logger.warning("Task %s rejected: %s", run.task_id, busy)
            await move(run, TaskState.TASK_STATE_REJECTED, "conversation busy")
        except A2AError:
            raise
        except Exception as error:
            failure = outcome.Failure(error)
            failure.log()
            await announce_and_emit(run, failure.status(run.task_id, run.context_id))
        return False

    async def _check_open(self, context: RequestContext) -> None:
        """Refuse a follow-up whose task another replica ended before this turn."""
        if self._progress is None or context.current_task is None:
            return
        # The end of the turn before this one may be on its way to the store; after a
        # while nobody brings it.
        with suppress(TimeoutError):
            async with asyncio.timeout(END_WAIT):
                task_id = context.current_task.id
                await self._progress.until_open(task_id, context.call_context)

    async def _leave_word(self, context: RequestContext) -> None:
        """Hold the turn until the next one can see that a follow-up was taken."""
        if self._progress is None or context.current_task is None:
            return
        message = context.message or Message()
        with suppress(TimeoutError, OperationalError):
            async with asyncio.timeout(END_WAIT):
                await self._progress.until_heard(
                    message.message_id, context.current_task.id, context.call_context
                )

    def _runner(self, talk: Conversation, memory: BaseMemoryService | None) -> Runner:
        # No artifact service: the agent saves none, and saving one fails loudly.
        return Runner(
            app_name=self._app_name,
            agent=self._agent,
            session_service=talk.service,
            memory_service=memory,
        )

    def _origin(self, context: RequestContext) -> facts.Origin:
        task_id, context_id = _ids(context)
        return facts.Origin(self._replica, _subject(context), context_id, task_id)


def _ids(context: RequestContext) -> tuple[str, str]:
    return context.task_id or "", context.context_id or ""


def _subject(context: RequestContext) -> str:
    return context.call_context.user.user_name
