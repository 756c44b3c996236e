"""The ASGI application around a2a-sdk: routes, filter, response headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.server.agent_execution import AgentExecutor, RequestContextBuilder
from a2a.server.cluster import TaskEventStream, VersionedTaskStore
from a2a.server.routes import create_agent_card_routes
from a2a.types import AgentCard
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from billing_agent.dispatch import Routes, rest_routes, rpc_route
from billing_agent.executor.progress import Progress
from billing_agent.follow_ups import FollowUps
from billing_agent.handler import Handler
from billing_agent.repeats import Repeats
from billing_agent.request_context import ConversationContextBuilder
from billing_agent.stores.sends import Sends
from billing_agent.stream_limit import StreamLimit


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the A2A surface; seconds and bytes.

    Args:
        blocking_wait: how long a blocking send waits for its run.
        consumption_wait: how long it then waits for the run's events to be stored.
        parked_timeout: how long a task that awaits input is kept in the process.
        stream_bytes: how much one event stream may send.
    """

    blocking_wait: float = 30.0
    consumption_wait: float = 5.0
    parked_timeout: float = 300.0
    stream_bytes: int = 16 * 2**20


def build_application(
    *,
    executor: AgentExecutor,
    task_store: VersionedTaskStore,
    event_stream: TaskEventStream,
    card: AgentCard,
    replica: str,
    guard: Callable[[ASGIApp], ASGIApp],
    running: Callable[[str], bool] = lambda task_id: False,
    goes_on: Callable[[str], Awaitable[bool]] | None = None,
    sends: Sends | None = None,
    context_builder: RequestContextBuilder | None = None,
    limits: Limits | None = None,
    routes: Sequence[BaseRoute] = (),
    elsewhere: Mapping[str, ASGIApp] | None = None,
) -> A2AApplication:
    """Return the ASGI application that serves an executor over A2A 1.0.

    Any executor can be served: the transport, the filter and the stores do not know
    the billing agent's.

    Args:
        executor: answers the messages.
        task_store: shared by all replicas.
        event_stream: carries task events between them.
        card: served as it is; its interfaces name the public address.
        replica: the name every answer carries in ``X-Replica``.
        guard: wraps the routes with the identity filter.
        running: says whether a task's run goes on in this process.
        goes_on: says whether it goes on in any; asked of tasks that say they work.
        sends: remembers first sends, so that a repeated one runs nothing.
        context_builder: by default the one that keeps tasks in their conversation.
        limits: see ``Limits``.
        routes: more routes behind the same filter.
        elsewhere: what is served in front of the filter, by the beginning of its
            paths.
    """
    limits = limits or Limits()

    async def runs_here(task_id: str) -> bool:
        return running(task_id)

    progress = Progress(task_store, event_stream)
    follow_ups = FollowUps(progress, goes_on or runs_here, limits.blocking_wait)
    handler = Handler(
        running=running,
        repeats=Repeats(sends, task_store, event_stream) if sends else None,
        follow_ups=follow_ups,
        blocking_wait=limits.blocking_wait,
        consumption_wait=limits.consumption_wait,
        agent_executor=executor,
        task_store=task_store,
        agent_card=card,
        event_stream=event_stream,
        request_context_builder=context_builder
        or ConversationContextBuilder(task_store),
        validate_input_modes=True,
        interrupted_task_timeout=limits.parked_timeout,
    )
    served = Routes(
        [
            *create_agent_card_routes(card, cache_control="public, max-age=300"),
            *rest_routes(handler),
            rpc_route(handler),
            *routes,
        ]
    )
    guarded = guard(StreamLimit(served, limits.stream_bytes))
    extensions = [extension.uri for extension in card.capabilities.extensions]
    named = _Named(guarded, replica, frozenset(extensions))
    return A2AApplication(named, handler, elsewhere or {})


class A2AApplication:
    """Sends every path to the guarded routes, but those served elsewhere.

    ``handler`` is public so that the process can drain it: Daphne sends no lifespan
    events.
    """

    def __init__(
        self, guarded: ASGIApp, handler: Handler, elsewhere: Mapping[str, ASGIApp]
    ) -> None:
        self.handler = handler
        self._guarded = guarded
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        for beginning, app in self._elsewhere.items():
            if path.startswith(beginning):
                await app(scope, receive, send)
                return
        await self._guarded(scope, receive, send)


class _Named:
    """Names the replica and the activated extensions in every answer's headers."""

    def __init__(self, app: ASGIApp, replica: str, extensions: frozenset[str]) -> None:
        self._app = app
        self._replica = replica
        self._extensions = extensions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Headers(scope=scope).getlist(HTTP_EXTENSION_HEADER)
        wanted = {uri.strip() for value in asked for uri in value.split(",")}
        active = ", ".join(sorted(wanted & self._extensions))

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Replica"] = self._replica
                if active:
                    headers[HTTP_EXTENSION_HEADER] = active
            await send(message)

        await self._app(scope, receive, named)
