"""The demo switches: an A2A extension, and one executor for each combination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.types import AgentExtension, SendMessageRequest, Task
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from billing_agent.executor.config import OutputMode
from billing_agent.request_context import ConversationContextBuilder

URI = "https://invoice-8812.example/a2a/demo-switches/v1"
EXTENSION = AgentExtension(
    uri=URI,
    description="Chooses continuity, output, sessions and cancel for one message.",
    required=False,
)
_STATE_KEY = "demo-switches"


class Toggle(StrEnum):
    """Whether the continuity hook runs."""

    ON = "on"
    OFF = "off"


class Sessions(StrEnum):
    """Where a replica keeps the sessions of a run."""

    MEMORY = "memory"
    SHARED = "shared"


class Cancel(StrEnum):
    """Whether a run hears cancels of other replicas."""

    BUS = "bus"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Switches:
    """What one message may choose about the executor that serves it."""

    continuity: Toggle = Toggle.ON
    output: OutputMode = OutputMode.PER_RUN
    sessions: Sessions = Sessions.SHARED
    cancel: Cancel = Cancel.BUS

    def chosen(self, values: Mapping[str, Any]) -> Switches:
        """Return these switches with the given ones set.

        Raises:
            ValueError: a switch or a value that does not exist; the message names it.
        """
        kinds: dict[str, type[StrEnum]] = {
            field.name: type(getattr(self, field.name)) for field in fields(self)
        }
        settings: dict[str, Any] = {}
        for name, value in values.items():
            if name not in kinds:
                raise ValueError(f"unknown switch {name!r}; known: {', '.join(kinds)}")
            try:
                settings[name] = kinds[name](value)
            except ValueError:
                known = ", ".join(kinds[name])
                raise ValueError(
                    f"switch {name} is one of {known}, not {value!r}"
                ) from None
        return replace(self, **settings)


class SwitchContextBuilder(ConversationContextBuilder):
    """Reads the switches of a send before anything is created.

    Args:
        task_store: see ``ConversationContextBuilder``.
        default: what a send without the extension gets.
    """

    def __init__(self, task_store: Any, default: Switches) -> None:
        super().__init__(task_store)
        self._default = default

    async def build(
        self,
        context: ServerCallContext,
        params: SendMessageRequest | None = None,
        task_id: str | None = None,
        context_id: str | None = None,
        task: Task | None = None,
    ) -> RequestContext:
        """Return the request context; the switches wait in the call's state.

        Raises:
            InvalidParamsError: an unknown switch or value, or an unusable context id.
        """
        switches = self._default
        if params is not None and URI in context.requested_extensions:
            switches = self._read(params)
        context.state[_STATE_KEY] = switches
        return await super().build(context, params, task_id, context_id, task)

    def _read(self, params: SendMessageRequest) -> Switches:
        values = MessageToDict(params.metadata).get(URI, {})
        # The agent's own metadata stays free of what only the demo understands.
        params.metadata.fields.pop(URI, None)
        if not isinstance(values, dict):
            raise InvalidParamsError(message=f"{URI} must be an object of switches")
        try:
            return self._default.chosen(values)
        except ValueError as error:
            raise InvalidParamsError(message=str(error)) from None


class Dispatcher(AgentExecutor):
    """Hands each message to the executor of its switches.

    All executors share one run registry, so a cancel, which carries no switches,
    may go through any of them.

    Args:
        build: makes the executor of a combination; called once for each.
        default: the combination that cancels go through.
    """

    def __init__(
        self, build: Callable[[Switches], AgentExecutor], default: Switches
    ) -> None:
        self._build = build
        self._default = default
        self._executors: dict[Switches, AgentExecutor] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the message on the executor its switches name."""
        switches = context.call_context.state.get(_STATE_KEY, self._default)
        await self._executor(switches).execute(context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel by task id, through the registry all executors share."""
        await self._executor(self._default).cancel(context, event_queue)

    def _executor(self, switches: Switches) -> AgentExecutor:
        if switches not in self._executors:
            self._executors[switches] = self._build(switches)
        return self._executors[switches]
