"""A task's events across replicas: rows are read when the bus says so."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from a2a.server.cluster import TaskEventStream, TaskVersion, VersionedEvent

from billing_agent.stores.bus import Bus
from billing_agent.stores.pool import Pool


class EventStream(TaskEventStream):
    """Yields the events that the task store wrote, on any replica.

    Args:
        pool: connections to read with.
        bus: wakes subscribers.
    """

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus

    async def publish(self, task_id: str, event: VersionedEvent) -> None:
        """Do nothing: the task store wrote the event with the task."""

    async def subscribe(
        self, task_id: str, *, after: TaskVersion
    ) -> AsyncGenerator[VersionedEvent, None]:
        """Yield the task's events after a version, until its state is terminal.

        The caller was authorised when it read the task; nothing is checked here.
        """
        raise NotImplementedError
        yield

    async def destroy(self, task_id: str) -> None:
        """Do nothing: the rows stay, and subscribers end by themselves."""
