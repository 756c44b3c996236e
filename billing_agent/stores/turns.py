"""Turns: one at a time per caller and conversation, over all replicas."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from psycopg import OperationalError

from billing_agent.errors import ConversationBusy
from billing_agent.stores.bus import Bus
from billing_agent.stores.link import Execute, Link

logger = logging.getLogger(__name__)

CHANNEL = "turns"

# Seconds. The one question that is repeated without a reason: a replica that is
# killed frees its turns without a word on the bus.
RECHECK = 5.0

T = TypeVar("T")


class Turns:
    """Serialises the turns of each conversation with advisory locks.

    Turns of one conversation queue up in the process, first come, first served; only
    the head of each queue asks the database. All locks of a process are on one
    connection, so a waiting turn holds none, and a process that dies frees its turns.

    When that connection is lost, the server frees the turns it held although they go
    on. They are taken again on the next connection, at once. Should another replica be
    faster, two turns overlap: the session store then refuses the one whose session is
    not up to date (``StaleSessionError``), so that nothing is ever interleaved.

    Args:
        conninfo: PostgreSQL URL or connection string, for the one connection.
        bus: tells that a turn ended on another replica.
    """

    def __init__(self, conninfo: str, bus: Bus) -> None:
        self._link = Link(conninfo, "billing-agent turns", self._take_again)
        self._bus = bus
        self._queues: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._heads: dict[int, asyncio.Event] = {}
        self._held: set[int] = set()
        self._unsubscribe: Callable[[], None] | None = None

    async def start(self) -> None:
        """Connect.

        Raises:
            psycopg.OperationalError: the first connection failed.
        """
        await self._link.start()
        self._unsubscribe = self._bus.subscribe(CHANNEL, self._freed, self._missed)

    async def stop(self) -> None:
        """Close the connection; the server frees the turns still held."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        await self._link.stop()

    @asynccontextmanager
    async def turn(
        self, subject: str, context_id: str, wait: float
    ) -> AsyncIterator[None]:
        """Hold the conversation's turn; waiting turns come in their order.

        Args:
            subject: the authenticated caller.
            context_id: the conversation.
            wait: seconds to wait at most.

        Raises:
            billing_agent.errors.ConversationBusy: it was not free within ``wait``.
            psycopg.OperationalError: the database cannot be reached.
        """
        key = lock_key(subject, context_id)
        queue = self._queues.setdefault(key, asyncio.Lock())
        try:
            async with asyncio.timeout(wait):
                await queue.acquire()
                try:
                    await self._take(key)
                except BaseException:
                    queue.release()
                    raise
        except TimeoutError:
            raise ConversationBusy(context_id, wait) from None
        try:
            yield
        finally:
            try:
                await _to_the_end(self._give(key))
            finally:
                queue.release()

    async def _take(self, key: int) -> None:
        """Wait at the head of the queue until the lock is ours."""
        freed = self._heads[key] = asyncio.Event()
        try:
            while not await _to_the_end(self._try(key)):
                with suppress(TimeoutError):
                    async with asyncio.timeout(RECHECK):
                        await freed.wait()
                freed.clear()
        except asyncio.CancelledError:
            if key in self._held:
                await _to_the_end(self._give(key))
            raise
        finally:
            del self._heads[key]

    async def _try(self, key: int) -> bool:
        ((taken,),) = await self._link.execute(
            "SELECT pg_try_advisory_lock(%s)", (key,)
        )
        if taken:
            self._held.add(key)
        return bool(taken)

    async def _give(self, key: int) -> None:
        self._held.discard(key)
        if not self._link.connected:
            return
        try:
            await self._link.execute(
                "SELECT pg_advisory_unlock(%s), pg_notify(%s, %s)",
                (key, CHANNEL, str(key)),
            )
        except OperationalError as error:
            logger.warning("A turn ended without its connection: %s", error)

    async def _take_again(self, execute: Execute) -> None:
        for key in tuple(self._held):
            ((taken,),) = await execute("SELECT pg_try_advisory_lock(%s)", (key,))
            if not taken:
                self._held.discard(key)
                logger.warning("Another replica has taken a turn that goes on here")
            elif key not in self._held:
                # The turn ended while it was taken again.
                await execute("SELECT pg_advisory_unlock(%s)", (key,))

    def _freed(self, payload: str) -> None:
        if head := self._heads.get(int(payload)):
            head.set()

    def _missed(self) -> None:
        for head in self._heads.values():
            head.set()


def lock_key(subject: str, context_id: str) -> int:
    """Return the advisory lock of a conversation: 64 bits of a digest."""
    digest = hashlib.sha256(f"{subject}\x1f{context_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


async def _to_the_end(work: Awaitable[T]) -> T:
    """Await work that must not stop half-way; a cancellation waits for its end."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if not cancelled:
        return task.result()
    # Whatever it ended with gives way to the cancellation.
    task.exception()
    raise asyncio.CancelledError
