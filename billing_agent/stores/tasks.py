"""A2A tasks in PostgreSQL: compare-and-swap, and terminal states that stay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    StoredTask,
    TaskVersion,
    VersionedTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.types import (
    ListTasksRequest,
    ListTasksResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.proto_utils import to_stream_response

from billing_agent.stores import task_sql as sql
from billing_agent.stores.pool import Pool, rows
from billing_agent.stores.task_pages import page_of_tasks

# The channel the statements in ``task_sql`` notify.
CHANNEL = "a2a_tasks"
_FRESH = "fresh-task-id"


def begin(context: ServerCallContext, task_id: str) -> None:
    """Note that an id was made in this call: nothing is stored under it yet.

    a2a-sdk asks for a new task three times before it saves it.
    """
    context.state[_FRESH] = task_id


@dataclass(frozen=True, slots=True)
class TaskNotice:
    """What a notification on ``CHANNEL`` says: a task was saved.

    ``state`` is the protocol name, ``TASK_STATE_WORKING`` say.
    """

    task_id: str
    version: int
    state: str

    @classmethod
    def parse(cls, payload: str) -> TaskNotice:
        """Read a notification's payload."""
        return cls(**json.loads(payload))


@dataclass(frozen=True, slots=True)
class StuckTask:
    """A task that says it runs and was not heard of; ``heard_at`` is None if never."""

    task: Task
    version: TaskVersion
    owner: str
    replica: str
    heard_at: datetime | None


class TaskStore(VersionedTaskStore):
    """Keeps tasks and their events on the tables of the Django models.

    Every read and write is within the owner, the authenticated user of the context;
    another owner's task is unknown. A save is one round trip that writes the task, its
    event and the notification together.

    Args:
        pool: connections to use.
        replica: name written to the tasks that go on here.
    """

    def __init__(self, pool: Pool, replica: str = "") -> None:
        self._pool = pool
        self._replica = replica

    async def save(
        self,
        task: Task,
        *,
        event: Event | None = None,
        prev: Task | None = None,
        prev_version: TaskVersion,
        context: ServerCallContext,
    ) -> TaskVersion:
        """Store a task over the version it was derived from.

        A move to CANCELED is not bound to the version: over a later one it sets the
        status and keeps what that version holds. A terminal state never changes.

        Raises:
            a2a.server.cluster.ConcurrentTaskModificationError: the stored version is
                another, the stored state is terminal, or the id is another owner's.
        """
        context.state.pop(_FRESH, None)
        owner = context.user.user_name
        parameters = self._row(task, owner, event)
        cancels = task.status.state == TaskState.TASK_STATE_CANCELED
        if prev_version.is_missing and not cancels:
            parameters["context"] = task.context_id
            saved = await rows(self._pool, sql.INSERT, parameters)
        else:
            parameters["version"] = prev_version._value
            saved = await rows(self._pool, sql.UPDATE, parameters)
            if cancels and not saved:
                saved = await self._cancel_newest(task, owner, event)
        if not saved:
            raise ConcurrentTaskModificationError(task.id)
        return TaskVersion(saved[0][0])

    async def _cancel_newest(
        self, task: Task, owner: str, event: Event | None
    ) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as connection, connection.transaction():
            cursor = await connection.execute(sql.LOCK, (task.id, owner))
            stored = await cursor.fetchone()
            if stored is None:
                return []
            newest = _with_status(stored[1], task.status)
            seen = newest if isinstance(event, Task) else event
            parameters = self._row(newest, owner, seen) | {"version": stored[0]}
            cursor = await connection.execute(sql.UPDATE, parameters)
            return await cursor.fetchall()

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        """Return the task with its version, None when the owner has none such."""
        if context.state.get(_FRESH) == task_id:
            return None
        found = await rows(self._pool, sql.GET, (task_id, context.user.user_name))
        if not found:
            return None
        version, body = found[0]
        return StoredTask(Task.FromString(body), TaskVersion(version))

    async def list(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        """List the owner's tasks, the latest status first.

        Raises:
            a2a.utils.errors.InvalidParamsError: the page token is not one of ours.
        """
        return await page_of_tasks(self._pool, params, context.user.user_name)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete the task and its events, if the owner has it."""
        owned = (task_id, context.user.user_name)
        async with self._pool.connection() as connection, connection.transaction():
            # The row first: a save under way is then either seen or refused.
            cursor = await connection.execute(sql.LOCK_ANY, owned)
            if await cursor.fetchone() is not None:
                await connection.execute(sql.DELETE_EVENTS, (task_id,))
                await connection.execute(sql.DELETE, (task_id,))

    async def context_of(self, task_id: str, owner: str) -> str | None:
        """Return the context id of a task, None when the owner has none such."""
        found = await rows(self._pool, sql.CONTEXT, (task_id, owner))
        return found[0][0] if found else None

    async def latest(self, task_ids: Iterable[str]) -> dict[str, TaskNotice]:
        """Return version and state of tasks by id, whoever owns them.

        For the process itself, to catch up after missed notifications; never for a
        caller.
        """
        found = await rows(self._pool, sql.LATEST, (list(task_ids),))
        return {row[0]: TaskNotice(*row) for row in found}

    async def heartbeat(self, task_ids: Iterable[str]) -> None:
        """Write that this replica runs these tasks now."""
        held = [*task_ids]
        if held:
            await rows(self._pool, sql.HEARTBEAT, (self._replica, held))

    async def runs(self, task_id: str, lately: float) -> bool:
        """Return whether a task goes on and was heard of in the last seconds."""
        return bool(await rows(self._pool, sql.RUNS, (task_id, lately)))

    async def stuck(
        self, older_than: float, *, replica: str | None = None, limit: int = 100
    ) -> Sequence[StuckTask]:
        """Return SUBMITTED and WORKING tasks that nobody was heard to run.

        Args:
            older_than: seconds since the last heartbeat and since the last save.
            replica: only those that went on there last; None for all.
            limit: tasks at most, the oldest first.
        """
        parameters = {"seconds": older_than, "replica": replica, "limit": limit}
        return [
            StuckTask(Task.FromString(body), TaskVersion(version), *heard)
            for body, version, *heard in await rows(self._pool, sql.STUCK, parameters)
        ]

    async def fail(self, stuck: StuckTask, event: TaskStatusUpdateEvent) -> bool:
        """Give a stuck task the status of ``event``; False when it moved meanwhile.

        Not bound to a caller: for the sweeper. Of several sweepers one gets True, and
        none when the task was saved or heard of since it was found.
        """
        failed = _with_status(stuck.task.SerializeToString(), event.status)
        parameters = self._row(failed, stuck.owner, event)
        parameters |= {"version": stuck.version._value, "heard_at": stuck.heard_at}
        return bool(await rows(self._pool, sql.FAIL, parameters))

    def _row(self, task: Task, owner: str, event: Event | None) -> dict[str, Any]:
        stamped = task.status.HasField("timestamp")
        response = to_stream_response(event) if event is not None else None
        return {
            "id": task.id,
            "owner": owner,
            "state": TaskState.Name(task.status.state),
            "status_at": task.status.timestamp.ToDatetime(UTC) if stamped else None,
            "body": task.SerializeToString(),
            "event": response and response.SerializeToString(),
            "replica": self._replica,
        }


def _with_status(body: bytes, status: TaskStatus) -> Task:
    """Return a stored task under a new status; its old message moves to history."""
    task: Task = Task.FromString(body)
    if task.status.HasField("message") and task.status.message != status.message:
        task.history.append(task.status.message)
    task.status.CopyFrom(status)
    return task
