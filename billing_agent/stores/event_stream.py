"""A task's events across replicas: rows are read when the bus says so."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from a2a.server.cluster import TaskEventStream, TaskVersion, VersionedEvent
from a2a.server.events import Event
from a2a.types import StreamResponse
from psycopg import OperationalError

from billing_agent.stores import task_sql as sql
from billing_agent.stores.bus import Bus
from billing_agent.stores.pool import Parameters, Pool, Row, rows
from billing_agent.stores.tasks import CHANNEL, TaskNotice


class EventStream(TaskEventStream):
    """Yields the events that the task store wrote, on any replica.

    Args:
        pool: connections to read with.
        bus: wakes subscribers.
    """

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        bus.subscribe(CHANNEL, self._heard, self._missed)

    async def publish(self, task_id: str, event: VersionedEvent) -> None:
        """Do nothing: the task store wrote the event with the task."""

    async def subscribe(
        self, task_id: str, *, after: TaskVersion
    ) -> AsyncGenerator[VersionedEvent, None]:
        """Yield the task's events after a version, until its state is terminal.

        The caller was authorised when it read the task; nothing is checked here.

        Raises:
            psycopg.OperationalError: the database answers no more.
        """
        version = after._value
        with self._awake(task_id) as wake:
            while True:
                wake.clear()
                ended, found = await self._read(task_id, version, wake)
                for version, body in found:
                    yield VersionedEvent(_event(body), TaskVersion(version))
                if ended:
                    return
                await wake.wait()

    async def destroy(self, task_id: str) -> None:
        """Do nothing: the rows stay, and subscribers end by themselves."""

    async def _read(
        self, task_id: str, after: int | str, wake: asyncio.Event
    ) -> tuple[bool, list[Row]]:
        """Return whether the task has ended, and its events after a version."""
        found = await self._patiently(wake, (after, task_id))
        ended = not found or found[0][0]
        return ended, [row[1:] for row in found if row[1] is not None]

    async def _patiently(
        self, wake: asyncio.Event, parameters: Parameters
    ) -> list[Row]:
        """Read; a database that is away is waited for until the bus is back."""
        again = False
        while True:
            try:
                return await rows(self._pool, sql.EVENTS, parameters)
            except OperationalError:
                # The bus may hear of the loss a moment after the pool.
                if self._bus.connected and again:
                    raise
                again = self._bus.connected
                if not again:
                    wake.clear()
                    await wake.wait()

    @contextmanager
    def _awake(self, task_id: str) -> Iterator[asyncio.Event]:
        wake = asyncio.Event()
        self._waiting[task_id].add(wake)
        try:
            yield wake
        finally:
            self._waiting[task_id].discard(wake)
            if not self._waiting[task_id]:
                del self._waiting[task_id]

    def _heard(self, payload: str) -> None:
        if self._waiting:
            for wake in self._waiting.get(TaskNotice.parse(payload).task_id, ()):
                wake.set()

    def _missed(self) -> None:
        for waiting in self._waiting.values():
            for wake in waiting:
                wake.set()


def _event(body: bytes) -> Event:
    response = StreamResponse.FromString(body)
    event: Event = getattr(response, response.WhichOneof("payload"))
    return event
