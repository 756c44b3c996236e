"""The pool of database connections that the stores of one process share."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

Pool = AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]]


async def open_pool(conninfo: str, size: int) -> Pool:
    """Open a pool of autocommit connections that survives a database restart.

    Args:
        conninfo: PostgreSQL URL or connection string.
        size: connections at most.

    Raises:
        psycopg.OperationalError: no connection could be made.
    """
    raise NotImplementedError
