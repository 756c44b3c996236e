"""A dedicated database connection that is watched, and reopened when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import LiteralString

import psycopg
from psycopg import AsyncConnection, Notify, OperationalError
from psycopg.sql import Composed

from billing_agent.stores.pool import OPTIONS, Connection, Row, still_open

logger = logging.getLogger(__name__)

# Seconds: the longest pause between two attempts to reopen, and how long a
# statement waits for a connection before it fails.
LONGEST_PAUSE = 2.0
OPEN_WAIT = 5.0

Statement = LiteralString | Composed
Execute = Callable[..., Awaitable[list[Row]]]


class Link:
    """One connection for statements and notifications, for as long as it is started.

    The loss of the connection is noticed at once, also while nothing is sent.

    Args:
        conninfo: PostgreSQL URL or connection string.
        name: application name, as ``pg_stat_activity`` shows it.
        on_open: prepares a fresh connection before anybody else uses it; it gets a
            function to execute statements with.
        on_notify: hears notifications.
    """

    def __init__(
        self,
        conninfo: str,
        name: str,
        on_open: Callable[[Execute], Awaitable[None]],
        on_notify: Callable[[Notify], None] | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._name = name
        self._on_open = on_open
        self._on_notify = on_notify
        self._connection: Connection | None = None
        self._watched: int | None = None
        self._using = asyncio.Lock()
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether the connection is open and prepared."""
        return self._up.is_set()

    async def start(self) -> None:
        """Connect, and keep connected from then on.

        Raises:
            psycopg.OperationalError: the first connection failed.
        """
        await self._open()
        self._keeper = asyncio.create_task(self._keep(), name=self._name)

    async def stop(self) -> None:
        """Close the connection for good."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        async with self._using:
            await self._close()

    async def execute(
        self, query: Statement, parameters: Sequence[object] = ()
    ) -> list[Row]:
        """Execute a statement that does no harm when it is executed twice.

        A statement that met the loss of the connection is tried once more on the next.

        Raises:
            psycopg.OperationalError: no connection within five seconds.
        """
        await self._wait_until_up()
        try:
            return await self._run(query, parameters)
        except OperationalError:
            if self.connected:
                raise
        await self._wait_until_up()
        return await self._run(query, parameters)

    async def _wait_until_up(self) -> None:
        try:
            async with asyncio.timeout(OPEN_WAIT):
                await self._up.wait()
        except TimeoutError:
            raise self._not_connected() from None

    async def _run(
        self, query: Statement, parameters: Sequence[object] = ()
    ) -> list[Row]:
        async with self._using:
            connection = self._connection
            if connection is None:
                raise self._not_connected()
            # psycopg watches the same socket itself while a statement runs.
            self._unwatch()
            try:
                cursor = await connection.execute(query, parameters)
                return await cursor.fetchall() if cursor.description else []
            finally:
                if connection is self._connection:
                    self._watch(connection)

    async def _keep(self) -> None:
        while True:
            await self._down.wait()
            await self._close()
            await self._reopen()
            logger.warning("%s: connected again", self._name)

    async def _reopen(self) -> None:
        pause, level = 0.05, logging.WARNING
        while not self.connected:
            # Jitter, so that the replicas do not all come back in one instant.
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311
            pause = min(LONGEST_PAUSE, pause * 2)
            try:
                await self._open()
            except psycopg.Error as error:
                logger.log(level, "%s: cannot reconnect: %s", self._name, error)
                # One line for an outage is enough.
                level = logging.DEBUG

    async def _open(self) -> None:
        connection: Connection = await AsyncConnection.connect(
            self._conninfo, fallback_application_name=self._name, **OPTIONS
        )
        if self._on_notify is not None:
            connection.add_notify_handler(self._on_notify)
        self._connection = connection
        self._down.clear()
        self._watch(connection)
        try:
            await self._on_open(self._run)
            if self._down.is_set():
                raise self._not_connected()
        except BaseException:
            await self._close()
            raise
        self._up.set()

    async def _close(self) -> None:
        self._up.clear()
        self._unwatch()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _watch(self, connection: Connection) -> None:
        if connection.closed:
            self._lose()
            return
        self._watched = connection.pgconn.socket
        loop = asyncio.get_running_loop()
        loop.add_reader(self._watched, self._readable, connection)
        # What arrived together with an answer makes the socket readable no more.
        self._readable(connection)

    def _unwatch(self) -> None:
        # By number: a lost connection has closed its socket already.
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def _readable(self, connection: Connection) -> None:
        try:
            still_open(connection)
        except OperationalError:
            self._unwatch()
            self._lose()
        pgconn = connection.pgconn
        while pgconn.notify_handler and (notice := pgconn.notifies()):
            pgconn.notify_handler(notice)

    def _lose(self) -> None:
        logger.warning("%s: connection lost", self._name)
        self._up.clear()
        self._down.set()

    def _not_connected(self) -> OperationalError:
        return OperationalError(f"{self._name}: not connected")
