"""What an executor is configured with: output mode, lookup, limits, hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from a2a.server.agent_execution import RequestContext
from a2a.types import TaskArtifactUpdateEvent, TaskStatusUpdateEvent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.telemetry.context import TelemetryConfig


class OutputMode(StrEnum):
    """What leaves for the caller: the final result only, or every event."""

    PER_RUN = "per-run"
    PER_EVENT = "per-event"


class Lookup(StrEnum):
    """What a missed session lookup does.

    ``CONTEXT_ID`` looks up by context id and creates under a generated id: the
    defect of ADK Java that the continuity hook makes up for.
    ``CREATE_UNDER_CONTEXT_ID`` creates under the id it looked up, as ADK Python does.
    """

    CONTEXT_ID = "context_id"
    CREATE_UNDER_CONTEXT_ID = "create_under_context_id"


BeforeExecute = Callable[[RequestContext], Awaitable[bool]]
"""Called before the session lookup; ``True`` skips the run (CANCELED)."""

AfterEvent = Callable[
    [RequestContext, TaskArtifactUpdateEvent | None, Event],
    Awaitable[TaskArtifactUpdateEvent | None],
]
"""Called with every complete or partial ADK event that has parts.

The update is what would leave for it, ``None`` where nothing would; what the hook
returns leaves instead.
"""

AfterExecute = Callable[
    [RequestContext, TaskStatusUpdateEvent], Awaitable[TaskStatusUpdateEvent | None]
]
"""Called with the final status; what it returns is enqueued.

Returning ``None`` leaves the task without a final status: return the argument
unless the rewrite is meant.
"""


def _default_run_config() -> RunConfig:
    # ADK's own default streams nothing; a test pins that. By its default it also
    # describes every content and tool anew at each model call, in OpenTelemetry's
    # experimental terms, whether or not anybody collects them.
    telemetry = TelemetryConfig(genai_semconv_stability_opt_in="stable")
    return RunConfig(max_llm_calls=20, telemetry=telemetry)


@dataclass(frozen=True, slots=True)
class ExecutorConfig:
    """Fixed configuration of one executor.

    Args:
        run_config: ADK's, for every run; its ``custom_metadata`` is kept.
        output_mode: what leaves for the caller.
        lookup: what a missed session lookup does.
        cancel_channel: whether a run hears cancels of other replicas.
        run_timeout: seconds a run may take, its wait for the turn not counted.
        turn_wait: seconds a message waits for the turn before it.
        before_execute: hook before the lookup, see ``BeforeExecute``.
        after_event: hook for each event, see ``AfterEvent``.
        after_execute: hook for the final status, see ``AfterExecute``.
    """

    run_config: RunConfig = field(default_factory=_default_run_config)
    output_mode: OutputMode = OutputMode.PER_RUN
    lookup: Lookup = Lookup.CONTEXT_ID
    cancel_channel: bool = True
    run_timeout: float = 120.0
    turn_wait: float = 60.0
    before_execute: BeforeExecute | None = None
    after_event: AfterEvent | None = None
    after_execute: AfterExecute | None = None
