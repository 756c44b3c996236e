"""Factories for executors, requests and agents that yield given events."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a.auth.user import User
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.types import Message, Part, Role, SendMessageRequest, Task
from google.adk.agents import BaseAgent
from google.adk.events.event import Event
from google.adk.sessions import InMemorySessionService
from google.genai import types

from billing_agent.executor.config import ExecutorConfig
from billing_agent.executor.continuity import continuity
from billing_agent.executor.lifecycle import Executor
from billing_agent.executor.registry import RunRegistry

APP = "billing_agent"


class Caller(User):
    """An authenticated caller of the given subject."""

    def __init__(self, subject: str) -> None:
        self._subject = subject

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._subject


class Collected:
    """An event queue that keeps what was enqueued, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def enqueue_event(self, event: Any) -> None:
        copy = type(event)()
        copy.CopyFrom(event)
        self.events.append(copy)


class LocalTurns:
    """Turns within this process."""

    def __init__(self) -> None:
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(
            asyncio.Lock
        )

    @asynccontextmanager
    async def turn(self, subject: str, context_id: str, wait: float):
        async with self._locks[subject, context_id]:
            yield


class Yields(BaseAgent):
    """An agent that yields the given events; an exception is raised instead."""

    script: list[Any] = []
    closed: list[bool] = []

    async def _run_async_impl(self, ctx):
        try:
            for item in self.script:
                if isinstance(item, BaseException):
                    raise item
                if callable(item):
                    item = await item(ctx)
                if item is not None:
                    copy = item.model_copy(deep=True)
                    copy.id = Event.new_id()
                    copy.invocation_id = ctx.invocation_id
                    yield copy
        finally:
            self.closed.append(True)


def says(*texts: str, author: str = "agent", **fields: Any) -> Event:
    """Return an event of text parts."""
    parts = [types.Part(text=text) for text in texts]
    return Event(
        author=author, content=types.Content(role="model", parts=parts), **fields
    )


def request(
    text: str | None = "hello",
    *,
    task: Task | None = None,
    task_id: str = "task-1",
    context_id: str = "ctx-41",
    subject: str = "workshop",
    metadata: dict[str, Any] | None = None,
    parts: list[Part] | None = None,
    message_id: str = "message-1",
) -> RequestContext:
    """Return a request context; ``text=None`` leaves the message out."""
    call = ServerCallContext(user=Caller(subject))
    if text is None:
        return RequestContext(call, task_id=task_id, context_id=context_id)
    message = Message(
        message_id=message_id,
        role=Role.ROLE_USER,
        parts=parts if parts is not None else [Part(text=text)],
    )
    params = SendMessageRequest(message=message)
    if metadata:
        params.metadata.update(metadata)
    return RequestContext(
        call, params, task_id=task_id, context_id=context_id, task=task
    )


@pytest.fixture
def registry() -> RunRegistry:
    return RunRegistry()


@pytest.fixture
def sessions() -> InMemorySessionService:
    return InMemorySessionService()


@pytest.fixture
def make_executor(registry, sessions):
    """Return a factory: ``make_executor(script or agent, hook=True, **config)``."""

    def make(agent: Any = (), *, hook: bool = False, **config: Any) -> Executor:
        if not isinstance(agent, BaseAgent):
            agent = Yields(name="agent", script=list(agent), closed=[])
        parts: dict[str, Any] = {
            "agent": agent,
            "app_name": APP,
            "sessions": sessions,
            "store": "memory",
            "registry": registry,
            "turns": LocalTurns(),
            "replica": "replica-a",
        }
        if hook:
            plain = Executor(**parts, config=ExecutorConfig())
            config["before_execute"] = continuity(plain.conversation)
        return Executor(**parts, config=ExecutorConfig(**config))

    return make


@pytest.fixture
def queue() -> Collected:
    return Collected()
