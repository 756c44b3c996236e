"""Puts one replica together: agent, stores, executor, hooks, A2A application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from a2a.server.agent_execution import (
    AgentExecutor,
    RequestContext,
    RequestContextBuilder,
)
from a2a.types import AgentExtension
from django.conf import settings
from google.adk.agents import LlmAgent
from google.adk.sessions import BaseSessionService, InMemorySessionService
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from billing_agent.a2a import A2AApplication, Limits, build_application
from billing_agent.agent.assembly import APP_NAME, build_agent
from billing_agent.agent.database import close_connections
from billing_agent.agent.warm_up import warm_up
from billing_agent.cancel import CancelChannel
from billing_agent.card import build_card
from billing_agent.drain import drain, until_stored
from billing_agent.executor.audit import AuditTrail
from billing_agent.executor.config import ExecutorConfig, OutputMode
from billing_agent.executor.continuity import continuity
from billing_agent.executor.lifecycle import Executor
from billing_agent.executor.progress import Progress
from billing_agent.executor.registry import RunRegistry
from billing_agent.facts import Store
from billing_agent.gate import Gate
from billing_agent.identity.guard import guarded
from billing_agent.identity.issuer import TOKEN_PATH
from billing_agent.stores.bus import Bus
from billing_agent.stores.event_stream import EventStream
from billing_agent.stores.memory import MemoryService, by_user
from billing_agent.stores.pool import Pool, open_pool
from billing_agent.stores.sends import Sends
from billing_agent.stores.sessions import SessionService
from billing_agent.stores.tasks import TaskStore
from billing_agent.stores.turns import Turns
from billing_agent.sweeper import Sweeper

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Replica:
    """One replica's parts; an ASGI application once ``serve`` has been called.

    Args:
        name: the replica's name, as the router knows it.
        pool: connections of the stores.
        bus: notifications between replicas.
        turns: serialises conversations.
        sessions: the session services, by store.
        agent: the ADK agent, shared by all runs.
    """

    name: str
    pool: Pool
    bus: Bus
    turns: Turns
    sessions: dict[Store, BaseSessionService]
    agent: LlmAgent = field(default_factory=build_agent)
    registry: RunRegistry = field(default_factory=RunRegistry)
    task_store: TaskStore = field(init=False)
    _event_stream: EventStream = field(init=False)
    _channel: CancelChannel = field(init=False)
    _background: list[asyncio.Task[None]] = field(default_factory=list)
    _application: A2AApplication | None = None
    _gate: Gate | None = None

    def __post_init__(self) -> None:
        self.task_store = TaskStore(self.pool, self.name)
        self._event_stream = EventStream(self.pool, self.bus)
        self._channel = CancelChannel(self.bus, self.registry, self.task_store)

    def executor(
        self,
        *,
        fixed: bool = True,
        output_mode: OutputMode = OutputMode.PER_RUN,
        store: Store = "shared",
        hears_channel: bool = True,
    ) -> Executor:
        """Return an executor over this replica's parts.

        Args:
            fixed: whether the continuity hook runs.
            output_mode: what leaves for the caller.
            store: where sessions are kept.
            hears_channel: whether runs hear cancels of other replicas.
        """
        config = ExecutorConfig(
            output_mode=output_mode,
            cancel_channel=hears_channel,
            run_timeout=settings.RUN_TIMEOUT,
            turn_wait=settings.TURN_WAIT,
            after_event=AuditTrail(self.pool, self.name),
        )
        executor = Executor(
            agent=self.agent,
            app_name=APP_NAME,
            sessions=self.sessions[store],
            store=store,
            registry=self.registry,
            turns=self.turns,
            replica=self.name,
            config=config,
            memory=self._memory,
            progress=Progress(self.task_store, self._event_stream),
        )
        return (
            executor.with_hook(continuity(executor.conversation)) if fixed else executor
        )

    def _memory(self, context: RequestContext) -> MemoryService:
        """Return memory within one conversation, as ADK's user is the context."""
        return MemoryService(self.pool, by_user(context.call_context.user.user_name))

    def serve(
        self,
        executor: AgentExecutor,
        *,
        extensions: Sequence[AgentExtension] = (),
        context_builder: RequestContextBuilder | None = None,
        routes: Sequence[BaseRoute] = (),
        elsewhere: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        """Begin to answer: build the application, listen for cancels, sweep."""
        token_url = settings.OIDC_ISSUER + TOKEN_PATH
        self._application = build_application(
            executor=executor,
            task_store=self.task_store,
            event_stream=self._event_stream,
            card=build_card(settings.PUBLIC_URL, token_url, extensions),
            replica=self.name,
            guard=lambda app: guarded(app, part=self.name),
            running=self.registry.__contains__,
            goes_on=self._goes_on,
            sends=Sends(self.pool, _lately()),
            context_builder=context_builder,
            limits=Limits(
                blocking_wait=settings.BLOCKING_WAIT,
                consumption_wait=settings.CONSUMPTION_WAIT,
                parked_timeout=settings.PARKED_TIMEOUT,
                stream_bytes=settings.STREAM_LIMIT,
            ),
            routes=routes,
            elsewhere=elsewhere,
        )
        self._gate = Gate(self._application, self._ready)
        self._channel.start()
        sweeper = Sweeper(
            self.pool,
            self.task_store,
            self.registry,
            replica=self.name,
            run_timeout=settings.RUN_TIMEOUT,
            interval=settings.SWEEP_INTERVAL,
        )
        for work in (sweeper.run(), sweeper.inherit(self.turns)):
            self._background.append(asyncio.create_task(work))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            RuntimeError: ``serve`` has not been called.
        """
        if self._gate is None:
            raise RuntimeError("the replica does not serve yet")
        await self._gate(scope, receive, send)

    async def close(self) -> None:
        """Refuse new work, let runs end within the grace period, then let go."""
        if self._gate is not None:
            self._gate.close()
            await drain(self.registry, self._gate.owes, settings.DRAIN_GRACE)
        await until_stored(self.task_store, self.registry, settings.CONSUMPTION_WAIT)
        if self._application is not None:
            closing = asyncio.ensure_future(self._application.handler.aclose())
            # a2a-sdk 1.3 waits for ever for an event that nobody reads any more.
            await asyncio.wait({closing}, timeout=1)
        await self._channel.stop()
        for work in self._background:
            work.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        close_connections()
        await self.turns.stop()
        await self.bus.stop()
        await self.pool.close()

    async def _goes_on(self, task_id: str) -> bool:
        """Return whether a task runs here, or was heard to run elsewhere."""
        here = task_id in self.registry
        return here or await self.task_store.runs(task_id, _lately())

    async def _ready(self) -> bool:
        return self.bus.connected


def _lately() -> float:
    """Return the seconds within which every run is heard of."""
    return 3.0 * settings.SWEEP_INTERVAL


async def open_replica(name: str) -> Replica:
    """Connect the parts of a replica.

    Raises:
        psycopg.OperationalError: the database cannot be reached.
    """
    url = settings.DATABASE_URL
    pool = await open_pool(url, settings.POOL_SIZE)
    bus = Bus(url)
    turns = Turns(url, bus)
    await bus.start()
    await turns.start()
    await warm_up()
    sessions: dict[Store, BaseSessionService] = {
        "memory": InMemorySessionService(),
        "shared": SessionService(pool),
    }
    return Replica(name, pool, bus, turns, sessions)
