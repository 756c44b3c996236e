"""One replica's parts in this process: real stores and handler, an agent of one's own.

What no request can bring about in a process of its own, hooks say, is tested here.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.types import (
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from billing_agent.a2a import Limits, build_application
from billing_agent.cancel import CancelChannel
from billing_agent.card import build_card
from billing_agent.executor.config import ExecutorConfig
from billing_agent.executor.continuity import continuity
from billing_agent.executor.lifecycle import Executor
from billing_agent.executor.progress import Progress
from billing_agent.executor.registry import RunRegistry
from billing_agent.stores.bus import Bus
from billing_agent.stores.event_stream import EventStream
from billing_agent.stores.pool import Pool
from billing_agent.stores.sends import Sends
from billing_agent.stores.sessions import SessionService
from billing_agent.stores.tasks import TaskStore
from tests.billing_agent.executor.conftest import APP, Caller, LocalTurns, Yields
from tests.billing_agent.executor.test_continuity import Asks, ask_user

# Seconds that no test waits for.
NEVER = 3600.0


class InProcess:
    """A replica without its network; ``call`` makes the context of one request."""

    def __init__(
        self,
        name: str,
        pool: Pool,
        bus: Bus,
        agent: BaseAgent,
        limits: Limits | None = None,
        **config: Any,
    ) -> None:
        self.registry = RunRegistry()
        self.store = TaskStore(pool, name)
        stream = EventStream(pool, bus)
        self.channel = CancelChannel(bus, self.registry, self.store)
        plain = Executor(
            agent=agent,
            app_name=APP,
            sessions=SessionService(pool),
            store="shared",
            registry=self.registry,
            turns=LocalTurns(),
            replica=name,
            config=ExecutorConfig(**config),
            progress=Progress(self.store, stream),
        )
        self.handler = build_application(
            executor=plain.with_hook(continuity(plain.conversation)),
            task_store=self.store,
            event_stream=stream,
            card=build_card("https://agent.example", "https://agent.example/token"),
            replica=name,
            guard=lambda app: app,
            running=self.registry.__contains__,
            sends=Sends(pool),
            limits=limits,
        ).handler
        self.channel.start()

    async def close(self) -> None:
        await self.handler.aclose()
        await self.channel.stop()

    def call(self) -> ServerCallContext:
        return ServerCallContext(user=Caller("workshop"))

    async def send(
        self,
        text: str,
        *,
        task_id: str = "",
        context_id: str = "",
        now: bool = False,
        media_type: str = "",
    ) -> Task:
        """Send a message, to a task or to a new one."""
        message = Message(
            message_id=f"m-{text}",
            task_id=task_id,
            context_id=context_id,
            role=Role.ROLE_USER,
            parts=[Part(text=text, media_type=media_type)],
        )
        configuration = SendMessageConfiguration(return_immediately=now)
        params = SendMessageRequest(message=message, configuration=configuration)
        return await self.handler.on_message_send(params, self.call())

    async def cancel(self, task_id: str) -> Task:
        return await self.handler.on_cancel_task(
            CancelTaskRequest(id=task_id), self.call()
        )

    @asynccontextmanager
    async def subscribe(self, task_id: str):
        """Yield an iterator over the events of a subscription."""
        params = SubscribeToTaskRequest(id=task_id)
        events = self.handler.on_subscribe_to_task(params, self.call())
        async with aclosing(events) as stream:
            yield stream

    async def stored(self, task_id: str) -> Task:
        """Return the task as it is stored."""
        return (await self.store.get(task_id, self.call())).task

    async def holds(self, task_id: str) -> bool:
        """Return whether a2a-sdk keeps the task in this process."""
        return await self.handler._active_task_registry.get(task_id) is not None


def plays(*script):
    """Return an agent that yields the given events."""
    return Yields(name="agent", script=list(script), closed=[])


def asks():
    """Return an agent that asks once, then repeats what it was told."""
    tool = LongRunningFunctionTool(ask_user)
    return LlmAgent(name="agent", model=Asks(model="asks", requests=[]), tools=[tool])


async def working(replica):
    """Return the id of a task that works here, if there is one."""
    for task_id in replica.registry.held():
        found = await replica.store.get(task_id, replica.call())
        if found and found.task.status.state == TaskState.TASK_STATE_WORKING:
            return task_id
    return None
