"""Status events of a run: how it starts, works, asks, ends; opaque error ids."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from a2a.server.events import Event
from a2a.types import (
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import UnsupportedOperationError

from billing_agent.errors import shown_to_callers

logger = logging.getLogger(__name__)

TERMINAL = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)
_ENDS_RUN = TERMINAL | {TaskState.TASK_STATE_INPUT_REQUIRED}


def check_open(task: Task) -> None:
    """Refuse a message to a task that has ended.

    Raises:
        UnsupportedOperationError: it has (A2A 1.0, section 3.1.1).
    """
    if task.status.state in TERMINAL:
        name = TaskState.Name(task.status.state)
        raise UnsupportedOperationError(
            message=f"Task {task.id} is in terminal state: {name}"
        )


def is_part(message_id: str, task: Task) -> bool:
    """Return whether a message has become part of a task."""
    return any(message.message_id == message_id for message in task.history)


def ends_run(event: Event) -> bool:
    """Return whether nothing of the same run may follow this event."""
    return isinstance(event, TaskStatusUpdateEvent) and event.status.state in _ENDS_RUN


def is_terminal(event: Event) -> bool:
    """Return whether an event shows or tells that its task has ended."""
    told = isinstance(event, Task | TaskStatusUpdateEvent)
    return told and event.status.state in TERMINAL


def status(
    task_id: str, context_id: str, state: TaskState, text: str = ""
) -> TaskStatusUpdateEvent:
    """Return a status event; ``text``, if any, as one agent message."""
    now = TaskStatus(state=state)
    now.timestamp.FromDatetime(datetime.now(UTC))
    if text:
        now.message.CopyFrom(
            Message(
                message_id=secrets.token_hex(16),
                role=Role.ROLE_AGENT,
                task_id=task_id,
                context_id=context_id,
                parts=[Part(text=text)],
            )
        )
    return TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=now)


def submitted(task_id: str, context_id: str, message: Message) -> Task:
    """Return the task that must open a new task's queue (a2a-sdk 1.3)."""
    first = Task(id=task_id, context_id=context_id, history=[message])
    first.status.CopyFrom(
        status(task_id, context_id, TaskState.TASK_STATE_SUBMITTED).status
    )
    return first


@dataclass(frozen=True, slots=True)
class Failure:
    """A FAILED status that hides its error, and the log line that does not.

    The two share an error id. ``ADK_DEBUG_ERRORS`` set to ``1`` or ``true`` adds the
    exception's class and text to the status, for a machine nobody else reaches.
    """

    error: BaseException
    error_id: str = field(default_factory=lambda: secrets.token_hex(6))

    def status(self, task_id: str, context_id: str) -> TaskStatusUpdateEvent:
        """Return the status event for a task."""
        text = f"Agent execution failed. (error_id: {self.error_id})"
        if shown_to_callers():
            kind = type(self.error)
            text += f": {kind.__module__}.{kind.__qualname__}: {self.error}"
        return status(task_id, context_id, TaskState.TASK_STATE_FAILED, text)

    def log(self) -> None:
        """Write the one log line that carries the error in full."""
        logger.error(
            "Runner failed to execute [error_id=%s]", self.error_id, exc_info=self.error
        )
