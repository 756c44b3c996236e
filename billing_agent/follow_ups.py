"""Messages to a task that exists: one at a time, and none to a run that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.types import Message
from a2a.utils._async_queue_compat import QueueShutDown
from a2a.utils.errors import UnsupportedOperationError

from billing_agent.executor.outcome import check_open, is_part, is_terminal
from billing_agent.executor.progress import Progress


class FollowUps:
    """Lets one message at a time work on a task.

    a2a-sdk 1.3 would queue a message behind the run that goes on, answer it with what
    that run sends, and drop it when that run ends the task: acknowledged, and lost.
    Here it waits for the end of the run: then it is an answer, or it is refused.

    Args:
        progress: tells how far a task is.
        goes_on: says whether any replica runs a task.
        wait: seconds to wait at most.
    """

    def __init__(
        self,
        progress: Progress,
        goes_on: Callable[[str], Awaitable[bool]],
        wait: float,
    ) -> None:
        self._progress = progress
        self._goes_on = goes_on
        self._wait = wait
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def alone(
        self, task_id: str, context: ServerCallContext
    ) -> AsyncIterator[None]:
        """Hold a task for one message; a message that names no task holds nothing.

        Raises:
            UnsupportedOperationError: the task has ended, or still works after the
                wait.
        """
        if not task_id:
            yield
            return
        lock = self._locks.setdefault(task_id, asyncio.Lock())
        try:
            async with asyncio.timeout(self._wait):
                await self._take(lock, task_id, context)
        except TimeoutError:
            raise UnsupportedOperationError(
                message=f"Task {task_id} is still working"
            ) from None
        try:
            yield
        except QueueShutDown:
            # a2a-sdk's word for a task that ended while the message was on its way.
            raise UnsupportedOperationError(
                message=f"Task {task_id} has just ended"
            ) from None
        finally:
            lock.release()

    async def _take(
        self, lock: asyncio.Lock, task_id: str, context: ServerCallContext
    ) -> None:
        await lock.acquire()
        try:
            await self._progress.until_open(task_id, context, self._goes_on)
        except BaseException:
            lock.release()
            raise

    async def check_heard(
        self, first: Event, message: Message, context: ServerCallContext
    ) -> None:
        """Refuse a message whose task was ended before the message became part of it.

        A cancel can come in between; its event would look like an answer.

        Args:
            first: what the caller would be told first.
            message: what the caller sent.
            context: the call.

        Raises:
            UnsupportedOperationError: the task has ended without the message.
        """
        if not is_terminal(first):
            return
        stored = await self._progress.task_store.get(message.task_id, context)
        if stored is not None and not is_part(message.message_id, stored.task):
            check_open(stored.task)
