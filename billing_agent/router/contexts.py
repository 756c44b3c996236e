"""The context of a task, read from the task store, for requests that name no more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from billing_agent.models import A2ATask
from billing_agent.recent import Recent

if TYPE_CHECKING:
    from psycopg import AsyncConnection

logger = logging.getLogger(__name__)

_FIND = f"SELECT context_id FROM {A2ATask._meta.db_table} WHERE id = %s AND owner = %s"  # noqa: S608


class TaskContexts:
    """Looks up contexts by owner and task id; it can write nothing.

    Args:
        conninfo: PostgreSQL; a login that may only read the task table is enough.
        kept: how many answers are remembered: a task never changes its context.
        wait: seconds an answer may take; routing goes on without it.
    """

    def __init__(self, conninfo: str, *, kept: int = 10_000, wait: float = 1.0) -> None:
        options = "-c default_transaction_read_only=on -c statement_timeout=1000"
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            conninfo,
            min_size=1,
            max_size=2,
            open=False,
            timeout=wait,
            kwargs={"autocommit": True, "options": options},
            check=AsyncConnectionPool.check_connection,
        )
        self._known: Recent[tuple[str, str], str] = Recent(kept)

    async def open(self) -> None:
        """Begin to connect; the database may still be on its way."""
        await self._pool.open(wait=False)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def __call__(self, subject: str, task_id: str) -> str:
        """Return the context of the subject's task, empty when there is none.

        It is a hint to route by, so a database that cannot be asked is no error here.
        """
        known = self._known.recall((subject, task_id))
        return known or await self._look_up(subject, task_id)

    async def _look_up(self, subject: str, task_id: str) -> str:
        try:
            async with self._pool.connection() as connection:
                found = await connection.execute(_FIND, (task_id, subject))
                row = await found.fetchone()
        except psycopg.Error as error:
            logger.warning("The context of a task cannot be looked up: %s", error)
            return ""
        if row is None:
            return ""
        self._known.keep((subject, task_id), row[0])
        return str(row[0])
