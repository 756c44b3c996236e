"""How far a stored task is, whichever replica works on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from a2a.server.cluster import StoredTask, TaskEventStream, VersionedTaskStore
from a2a.server.context import ServerCallContext
from a2a.types import Task, TaskState

from billing_agent.executor.outcome import TERMINAL, check_open, is_part

_GOING_ON = frozenset({TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING})


async def always(task_id: str) -> bool:
    """Say that a task which says that it goes on does."""
    return True


@dataclass(frozen=True, slots=True)
class Progress:
    """Waits until a task can take a message.

    Args:
        task_store: where the task's state is.
        event_stream: tells when it changes.
    """

    task_store: VersionedTaskStore
    event_stream: TaskEventStream

    async def until_open(
        self,
        task_id: str,
        context: ServerCallContext,
        goes_on: Callable[[str], Awaitable[bool]] = always,
    ) -> None:
        """Wait while a task goes on.

        Args:
            task_id: the task; one that does not exist is not waited for.
            context: the call.
            goes_on: is asked whether a task that says so really does.

        Raises:
            UnsupportedOperationError: the task has ended.
        """
        while stored := await self.task_store.get(task_id, context):
            check_open(stored.task)
            moving = stored.task.status.state in _GOING_ON or _is_answered(stored.task)
            if not (moving and await goes_on(task_id)):
                return
            await self._changed(stored)

    async def until_heard(
        self, message_id: str, task_id: str, context: ServerCallContext
    ) -> None:
        """Wait until the task shows that it was sent a message, or has ended."""
        while stored := await self.task_store.get(task_id, context):
            task = stored.task
            heard = is_part(message_id, task) and not _is_answered(task)
            if heard or task.status.state in TERMINAL:
                return
            await self._changed(stored)

    async def _changed(self, stored: StoredTask) -> None:
        events = self.event_stream.subscribe(stored.task.id, after=stored.version)
        async with aclosing(events) as changes:
            async for _ in changes:
                return


def _is_answered(task: Task) -> bool:
    """Return whether a question was answered: a2a-sdk saves that before the state."""
    asked = task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    return asked and not task.status.HasField("message")
