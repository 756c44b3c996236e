"""The bus between replicas: LISTEN and NOTIFY on one dedicated connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import Notify, OperationalError, sql

from billing_agent.stores.link import Execute, Link

logger = logging.getLogger(__name__)

# PostgreSQL refuses a payload of this many bytes.
PAYLOAD_LIMIT = 8000


@dataclass(frozen=True, slots=True, eq=False)
class _Subscriber:
    channel: str
    on_payload: Callable[[str], None]
    on_gap: Callable[[], None] | None

    def hear(self, payload: str) -> None:
        try:
            self.on_payload(payload)
        except Exception:
            logger.exception("A subscriber of %s failed", self.channel)

    def gap(self) -> None:
        try:
            if self.on_gap is not None:
                self.on_gap()
        except Exception:
            logger.exception("A subscriber of %s failed", self.channel)


class Bus:
    """Delivers PostgreSQL notifications to subscribers of this process.

    Nothing is polled. While the connection is down notifications are missed, so every
    subscriber's ``on_gap`` is called when it is back, and once when a channel's first
    LISTEN has taken effect: that is the moment to read the tables. A subscriber that
    raises is logged and does not disturb the others.

    Args:
        conninfo: PostgreSQL URL or connection string.
    """

    def __init__(self, conninfo: str) -> None:
        self._link = Link(conninfo, "billing-agent bus", self._opened, self._heard)
        self._subscribers: dict[str, list[_Subscriber]] = {}
        self._listening: set[str] = set()
        self._settling: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether notifications arrive at this moment."""
        return self._link.connected

    async def start(self) -> None:
        """Connect; from then on the bus reconnects by itself.

        Raises:
            psycopg.OperationalError: the first connection failed.
        """
        await self._link.start()

    async def stop(self) -> None:
        """Close the connection; nothing is delivered any more."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait({self._settling})
        await self._link.stop()

    def subscribe(
        self,
        channel: str,
        on_payload: Callable[[str], None],
        on_gap: Callable[[], None] | None = None,
    ) -> Callable[[], None]:
        """Call ``on_payload`` for every notification of a channel.

        May be called before ``start``.

        Returns:
            A function that ends the subscription.
        """
        subscriber = _Subscriber(channel, on_payload, on_gap)
        self._subscribers.setdefault(channel, []).append(subscriber)
        self._settle()

        def unsubscribe() -> None:
            left = self._subscribers.get(channel, [])
            if subscriber in left:
                left.remove(subscriber)
            if not left:
                self._subscribers.pop(channel, None)
            self._settle()

        return unsubscribe

    async def notify(self, channel: str, payload: str) -> None:
        """Send a notification to every process that listens, this one included.

        Raises:
            ValueError: the payload has 8000 bytes or more (PostgreSQL's limit).
            psycopg.OperationalError: the bus is not connected.
        """
        if len(payload.encode()) >= PAYLOAD_LIMIT:
            raise ValueError(f"a payload must be shorter than {PAYLOAD_LIMIT} bytes")
        await self._link.execute("SELECT pg_notify(%s, %s)", (channel, payload))

    def _heard(self, notice: Notify) -> None:
        for subscriber in tuple(self._subscribers.get(notice.channel, ())):
            subscriber.hear(notice.payload)

    async def _opened(self, execute: Execute) -> None:
        self._listening.clear()
        await self._bring_in_line(execute)

    def _settle(self) -> None:
        busy = self._settling is not None and not self._settling.done()
        # A connection that is not open yet is brought in line when it opens.
        if self.connected and not busy:
            self._settling = asyncio.create_task(self._settle_now())

    async def _settle_now(self) -> None:
        try:
            await self._bring_in_line(self._link.execute)
        except OperationalError as error:
            logger.warning("The bus lost its connection while it settled: %s", error)

    async def _bring_in_line(self, execute: Execute) -> None:
        """Listen to what has subscribers, and to nothing else."""
        fresh: list[str] = []
        while self._listening != self._subscribers.keys():
            for channel in self._subscribers.keys() - self._listening:
                await execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                self._listening.add(channel)
                fresh.append(channel)
            for channel in self._listening - self._subscribers.keys():
                await execute(sql.SQL("UNLISTEN {}").format(sql.Identifier(channel)))
                self._listening.discard(channel)
        # Soon, not now: a connection that is being opened is connected by then.
        asyncio.get_running_loop().call_soon(self._report_gap, fresh)

    def _report_gap(self, channels: list[str]) -> None:
        for channel in channels:
            for subscriber in tuple(self._subscribers.get(channel, ())):
                subscriber.gap()
