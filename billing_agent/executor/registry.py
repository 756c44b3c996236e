"""Which runs this process holds, and the gate before each run's event queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import ReferenceType, ref

from a2a.server.events import Event, EventQueue
from a2a.types import TaskState, TaskStatusUpdateEvent

from billing_agent.executor import outcome
from billing_agent.facts import Origin


@dataclass(frozen=True, slots=True)
class Parked:
    """The queue of a task that awaits input here."""

    context_id: str
    queue: EventQueue


@dataclass(slots=True)
class Run:
    """One ``execute`` call: what it may still enqueue, and how to stop it.

    Args:
        task_id: the A2A task it works on.
        context_id: the task's conversation.
        queue: the SDK's queue of this task.
        origin: where its facts come from.
        hears_channel: whether a cancel of another replica stops it.
    """

    task_id: str
    context_id: str
    queue: EventQueue
    origin: Origin
    hears_channel: bool = True
    task: asyncio.Task[object] | None = field(default_factory=asyncio.current_task)
    closed: bool = False
    ended: bool = False

    def status(self, state: TaskState, text: str = "") -> TaskStatusUpdateEvent:
        """Return a status event of this run's task."""
        return outcome.status(self.task_id, self.context_id, state, text)

    async def emit(self, event: Event) -> None:
        """Enqueue an event unless the run's final status has been enqueued.

        One final status per run: a2a-sdk 1.3 would store a second one.
        """
        if self.closed:
            return
        self.closed = outcome.ends_run(event)
        self.ended = outcome.is_terminal(event)
        await self.queue.enqueue_event(event)

    async def stop(self, status: TaskStatusUpdateEvent) -> None:
        """Enqueue a final status and cancel the run, wherever it is.

        The status goes first: cancelling alone would end the subscribers' streams
        without a terminal event. It also withdraws a question asked a moment ago.
        """
        if not self.ended:
            self.closed = self.ended = True
            await self.queue.enqueue_event(status)
        if self.task is not None:
            self.task.cancel()


class RunRegistry:
    """The runs of one process by task id, and the queues of parked tasks."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._parked: dict[str, tuple[str, ReferenceType[EventQueue]]] = {}
        self._ended: dict[str, float] = {}

    def register(self, run: Run) -> None:
        """Hold a run.

        Raises:
            RuntimeError: a run of this task id is held already.
        """
        if run.task_id in self._runs:
            raise RuntimeError(f"Task {run.task_id} already running")
        self._parked.pop(run.task_id, None)
        self._ended.pop(run.task_id, None)
        self._runs[run.task_id] = run

    def release(self, run: Run, *, parked: bool) -> None:
        """Let go of a run; a parked one keeps its queue until its task ends."""
        if self._runs.get(run.task_id) is run:
            del self._runs[run.task_id]
            self._ended[run.task_id] = time.monotonic()
            if parked:
                self._park(run)

    def get(self, task_id: str) -> Run | None:
        """Return the run that works on a task here, if any."""
        return self._runs.get(task_id)

    def _park(self, run: Run) -> None:
        # The SDK owns the queue and drops it when it lets the task go.
        def forget(gone: ReferenceType[EventQueue]) -> None:
            if self._parked.get(run.task_id, ("", None))[1] is gone:
                del self._parked[run.task_id]

        self._parked[run.task_id] = (run.context_id, ref(run.queue, forget))

    def take_parked(self, task_id: str) -> Parked | None:
        """Return and forget the queue of a task parked here, if it is."""
        context_id, reference = self._parked.pop(task_id, ("", None))
        queue = reference() if reference else None
        return Parked(context_id, queue) if queue is not None else None

    def runs(self) -> list[Run]:
        """Return the runs held now."""
        return list(self._runs.values())

    def held(self) -> list[str]:
        """Return the ids of the tasks that run here."""
        return list(self._runs)

    def ended(self, seconds: float) -> set[str]:
        """Return the tasks whose runs ended here at least so many seconds ago."""
        latest = time.monotonic() - seconds
        return {task_id for task_id, at in self._ended.items() if at <= latest}

    def forget(self, task_ids: Iterable[str]) -> None:
        """Return these tasks no more as ended."""
        for task_id in task_ids:
            self._ended.pop(task_id, None)

    def waiting(self) -> list[str]:
        """Return the ids of the tasks parked here."""
        return list(self._parked)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)
