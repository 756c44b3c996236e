"""The pool of database connections that the stores of one process share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString
from weakref import WeakSet

from psycopg import AsyncConnection, OperationalError
from psycopg_pool import AsyncConnectionPool

Row = tuple[Any, ...]
Parameters = Sequence[object] | Mapping[str, object]
Connection = AsyncConnection[Row]
Pool = AsyncConnectionPool[Connection]

# Seconds. A request that finds no database fails well within ten, although it may
# wait several times: for an event to be stored, then for its failure.
CONNECT_TIMEOUT = 5
CHECKOUT_TIMEOUT = 5.0
AWAY_TIMEOUT = 0.5
# The library doubles its pause up to this long, then tries at the next request.
RECONNECT_TIMEOUT = 3.0

BOUNDED: dict[str, Any] = {
    "connect_timeout": CONNECT_TIMEOUT,
    # A peer that vanished without a word is noticed after 25 seconds, and after ten
    # (milliseconds here) when it owes an answer: then nothing else is tried.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
OPTIONS: dict[str, Any] = {"autocommit": True, **BOUNDED}


async def open_pool(conninfo: str, size: int) -> Pool:
    """Open a pool of autocommit connections that survives a database restart.

    A database that could not be reached for some seconds is waited for only briefly
    until it can.

    Args:
        conninfo: PostgreSQL URL or connection string.
        size: connections at most.

    Raises:
        psycopg.OperationalError: no connection could be made.
    """

    async def check(connection: Connection) -> None:
        try:
            still_open(connection)
        except OperationalError:
            await connection.close()
            # The others are dead as well, most likely: the server restarted.
            await pool.drain()
            raise

    made: WeakSet[Connection] = WeakSet()

    async def away(pool: Pool) -> None:
        # While one is open the server is there, and has no room for another.
        if all(connection.closed for connection in made):
            pool.timeout = AWAY_TIMEOUT

    async def back(connection: Connection) -> None:
        made.add(connection)
        pool.timeout = CHECKOUT_TIMEOUT

    pool: Pool = AsyncConnectionPool(
        conninfo,
        connection_class=Connection,
        min_size=min(2, size),
        max_size=size,
        open=False,
        check=check,
        configure=back,
        reconnect_failed=away,
        timeout=CHECKOUT_TIMEOUT,
        reconnect_timeout=RECONNECT_TIMEOUT,
        kwargs={"fallback_application_name": "billing-agent stores", **OPTIONS},
    )
    await pool.open(wait=True, timeout=CONNECT_TIMEOUT)
    return pool


def still_open(connection: Connection) -> None:
    """Raise when the server has closed a connection; costs no round trip.

    Raises:
        psycopg.OperationalError: it has.
    """
    # The first read may find the server's last words, only the second the end.
    connection.pgconn.consume_input()
    connection.pgconn.consume_input()


async def rows(pool: Pool, query: LiteralString, parameters: Parameters) -> list[Row]:
    """Execute one statement and return all its rows."""
    async with pool.connection() as connection:
        cursor = await connection.execute(query, parameters)
        # Not ``description``: that makes an object of every column.
        result = cursor.pgresult
        return await cursor.fetchall() if result and result.nfields else []
