"""Repeated sends: the same message sent again gets the first one's task."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from a2a.server.cluster import (
    StoredTask,
    TaskEventStream,
    TaskVersion,
    VersionedTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.id_generator import IDGenerator, IDGeneratorContext
from a2a.types import Message, SendMessageRequest, Task, TaskState
from a2a.utils.errors import TaskNotFoundError
from psycopg import OperationalError

from billing_agent.executor.outcome import TERMINAL, check_open, is_part
from billing_agent.stores.sends import Sends
from billing_agent.stores.tasks import begin

_STATE_KEY = "reserved-task-id"
# Seconds between two looks at a first send that has no task yet, and how long a
# failed one tries to be forgotten.
_PAUSE = 0.05
_GIVE_BACK = 1.0
_INTERRUPTED = frozenset(
    {TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED}
)


class ReservedTaskId(IDGenerator):
    """Gives a new task the id that was reserved for its send."""

    def __init__(self, task_id: str) -> None:
        self._task_id = task_id

    def generate(self, context: IDGeneratorContext) -> str:
        """Return the reserved id."""
        return self._task_id


def reserved(context: ServerCallContext) -> IDGenerator | None:
    """Return the generator of the call's reserved task id, if one is reserved."""
    task_id = context.state.get(_STATE_KEY)
    return ReservedTaskId(task_id) if task_id else None


@dataclass(frozen=True, slots=True)
class Repeats:
    """Tells first sends from repeated ones, over all replicas.

    A send is repeated when subject, contextId, taskId, messageId and parts are the
    same. One that names neither a context nor a task is never matched.

    Args:
        sends: where first sends are remembered.
        task_store: where the first one's task is found.
        event_stream: tells of its progress.
    """

    sends: Sends
    task_store: VersionedTaskStore
    event_stream: TaskEventStream

    async def claim(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Claim | None:
        """Return what the send is; ``None`` for one that is never matched.

        A first send of a new task has its task id reserved from here on. The task of
        a repeated one exists. Should the first send fail, or its replica die, before
        its task has heard it, a repeated one becomes the first.
        """
        message = params.message
        if not (message.context_id or message.task_id):
            return None
        if not (message.message_id and message.role and message.parts):
            return None  # it will be refused
        while True:
            claim = await self._claim(message, context)
            if claim.first:
                break
            task, _ = await claim.task()
            if task is None:
                await asyncio.sleep(_PAUSE)
            elif claim.heard(task) or not await claim.lapses():
                break
        if claim.first and claim.new_task:
            context.state[_STATE_KEY] = claim.task_id
            begin(context, claim.task_id)
        return claim

    async def _claim(self, message: Message, context: ServerCallContext) -> Claim:
        owner, key = context.user.user_name, _key(message)
        task_id, first = await self.sends.claim(owner, key, message.task_id)
        new_task = not message.task_id
        return Claim(self, context, key, task_id, message.message_id, first, new_task)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one send turned out to be.

    Args:
        repeats: who told.
        context: the call.
        key: identity of the send.
        task_id: the task that the first send of this identity works on.
        message_id: the message's id.
        first: whether this is that first send.
        new_task: whether it begins the task.
    """

    repeats: Repeats
    context: ServerCallContext
    key: str
    task_id: str
    message_id: str
    first: bool
    new_task: bool

    async def give_back(self) -> None:
        """Forget a first send that no task has heard, so that it may be tried again.

        When the database is away the claim stays, and lapses.
        """
        owner, sends = self.context.user.user_name, self.repeats.sends
        with suppress(OperationalError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK):
                stored = await self._stored()
                if stored is None or not self.heard(stored.task):
                    stored_too = not self.new_task
                    await sends.forget(owner, self.key, stored_too=stored_too)

    async def lapses(self) -> bool:
        """Forget a first send that nobody will bring any more, if it is one."""
        return await self.repeats.sends.lapse(self.context.user.user_name, self.key)

    async def settled(self) -> Task:
        """Wait until the first send's run has ended or asks back.

        Raises:
            UnsupportedOperationError: the task ended without hearing the message.
        """
        return await self._once(self.is_settled)

    async def taken(self) -> Task:
        """Wait until the message is part of the first send's task; return that.

        Raises:
            UnsupportedOperationError: the task ended without hearing the message.
        """
        return await self._once(self.heard)

    async def _once(self, wanted: Callable[[Task], bool]) -> Task:
        while True:
            task, version = await self.task()
            if task is not None:
                if not self.heard(task):
                    check_open(task)
                if wanted(task):
                    return task
            await self._changed(version)

    async def task(self) -> tuple[Task | None, TaskVersion]:
        """Return the first send's task and its version as stored now.

        Raises:
            TaskNotFoundError: the sends name a task that does not exist: nothing to
                wait for.
        """
        stored = await self._stored()
        if stored is None and not self.new_task:
            raise TaskNotFoundError(f"Task {self.task_id} not found")
        return (stored.task, stored.version) if stored else (None, TaskVersion.MISSING)

    def is_settled(self, task: Task) -> bool:
        """Return whether the message's run has ended or asks back.

        A follow-up's task rests in the state that the message before it left until
        its run begins: the message is not in the history yet, or (a2a-sdk saves it
        first) the old question is not in the status any more.
        """
        if task.status.state in TERMINAL:
            return True
        asks = task.status.state in _INTERRUPTED and task.status.HasField("message")
        return self.heard(task) and asks

    async def _stored(self) -> StoredTask | None:
        return await self.repeats.task_store.get(self.task_id, self.context)

    def heard(self, task: Task) -> bool:
        """Return whether the message has become part of a task."""
        return is_part(self.message_id, task)

    async def _changed(self, version: TaskVersion) -> None:
        events = self.repeats.event_stream.subscribe(self.task_id, after=version)
        async with aclosing(events) as changes:
            async for _ in changes:
                return


def _key(message: Message) -> str:
    identity = Message(
        message_id=message.message_id,
        context_id=message.context_id,
        task_id=message.task_id,
        parts=message.parts,
    )
    content = identity.SerializeToString(deterministic=True)
    return hashlib.sha256(content).hexdigest()
