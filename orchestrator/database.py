"""Connections to the store of runs, none of which waits for ever."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool

from orchestrator import deployment
from orchestrator.per_loop import PerLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 8.0
POOL_SECONDS = 4.0


async def _check(connection: AsyncConnection[TupleRow]) -> None:
    """Notice a connection that a restart of PostgreSQL has cut; the pool replaces it.

    An idle connection has nothing to say: if there is something to read, it is the
    end. That costs no round trip, of which a turn would make dozens.
    """
    with DefaultSelector() as selector:
        selector.register(connection.fileno(), EVENT_READ)
        if selector.select(0):
            await AsyncConnectionPool.check_connection(connection)


def new_pool() -> AsyncConnectionPool[AsyncConnection[TupleRow]]:
    """Return a pool as each event loop has one; it is not open yet."""
    return AsyncConnectionPool(
        deployment.current().database,
        min_size=1,
        max_size=4,
        timeout=POOL_SECONDS,
        kwargs={"autocommit": True, "row_factory": tuple_row},
        check=_check,
        name="runs",
        open=False,
    )


_pools = PerLoop(new_pool, lambda pool: pool.close())


async def close() -> None:
    """Close the running loop's connections; the next use opens new ones."""
    await _pools.aclose()


@asynccontextmanager
async def connection() -> AsyncIterator[AsyncConnection[TupleRow]]:
    """Lend a connection, for ``ANSWER_SECONDS`` with the wait for it.

    Raises:
        psycopg.OperationalError: there was none, or PostgreSQL did not answer in
            time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ANSWER_SECONDS
    pool = _pools.get()
    await pool.open()
    async with pool.connection() as lent:
        cut = loop.call_at(deadline, _cut, lent)
        try:
            yield lent
        finally:
            cut.cancel()


def _cut(silent: AsyncConnection[TupleRow]) -> None:
    """End a connection at our side, which is an error where it is waited on.

    A cancelled statement would first wait for PostgreSQL to confirm that.
    """
    logger.warning("PostgreSQL did not answer in %g s: cut off", ANSWER_SECONDS)
    line = socket.socket(fileno=silent.fileno())
    with suppress(OSError):  # it has ended by itself
        line.shutdown(socket.SHUT_RDWR)
    line.detach()  # psycopg closes it


async def execute(
    statement: LiteralString, values: Sequence[Any] | dict[str, Any]
) -> list[TupleRow]:
    """Run one statement, committed before this returns; return its rows.

    Raises:
        psycopg.Error: it failed, or there was no answer in time.
    """
    async with connection() as lent:
        cursor = await lent.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []
