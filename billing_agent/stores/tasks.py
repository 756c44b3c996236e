"""A2A tasks in PostgreSQL: compare-and-swap, and terminal states that stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from a2a.server.cluster import StoredTask, TaskVersion, VersionedTaskStore
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.types import ListTasksRequest, ListTasksResponse, Task, TaskStatusUpdateEvent

from billing_agent.stores.pool import Pool

CHANNEL = "a2a_tasks"


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
        raise NotImplementedError


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
        replica: name written to the tasks that begin or are claimed here.
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

        A move to CANCELED is not bound to the version. A terminal state never changes.

        Raises:
            a2a.server.cluster.ConcurrentTaskModificationError: the stored version is
                another, the stored state is terminal, or the id is another owner's.
        """
        raise NotImplementedError

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        """Return the task with its version, None when the owner has none such."""
        raise NotImplementedError

    async def list(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        """List the owner's tasks, the latest status first.

        Raises:
            a2a.utils.errors.InvalidParamsError: the page token is not one of ours.
        """
        raise NotImplementedError

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete the task and its events, if the owner has it."""
        raise NotImplementedError

    async def context_of(self, task_id: str, owner: str) -> str | None:
        """Return the context id of a task, None when the owner has none such."""
        raise NotImplementedError

    async def latest(self, task_ids: Iterable[str]) -> dict[str, TaskNotice]:
        """Return version and state of tasks by id, whoever owns them.

        For the process itself, to catch up after missed notifications; never for a
        caller.
        """
        raise NotImplementedError

    async def first_send(self, owner: str, send_key: str, task_id: str) -> str:
        """Claim a send for a new task; return the task that has it.

        The first claim wins, on whichever replica, before any task is stored: a caller
        that gets another id than ``task_id`` must follow that task and run nothing. A
        claim whose task never came to be lapses after ten seconds.

        Args:
            owner: the authenticated user.
            send_key: identity of the send, at most 64 characters.
            task_id: the task this send would make.
        """
        raise NotImplementedError

    async def find_send(self, owner: str, send_key: str) -> str | None:
        """Return the task a send was claimed for, None when it is new."""
        raise NotImplementedError

    async def claim(self, task_id: str) -> None:
        """Write that the task runs on this replica from now on."""
        raise NotImplementedError

    async def heartbeat(self, task_ids: Iterable[str]) -> None:
        """Write that this replica still runs these tasks."""
        raise NotImplementedError

    async def stuck(self, older_than: float, limit: int = 100) -> list[StuckTask]:
        """Return SUBMITTED and WORKING tasks that nobody was heard to run.

        Args:
            older_than: seconds since the last heartbeat and since the last save.
            limit: tasks at most, the oldest first.
        """
        raise NotImplementedError

    async def fail(self, stuck: StuckTask, event: TaskStatusUpdateEvent) -> bool:
        """Give a stuck task the status of ``event``; False when it moved meanwhile.

        Not bound to a caller: for the sweeper. Of several sweepers one gets True.
        """
        raise NotImplementedError
