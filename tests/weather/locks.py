"""Locks on the demo's tables, held from outside while something waits for them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql

from billing_agent.stores.turns import lock_key
from tests.billing_agent.contract.watch import rows, until

INVOICES = "billing_agent_lineitem"
SESSIONS = "billing_agent_adksession"
TASKS = "billing_agent_a2atask"


@asynccontextmanager
async def locked(demo: Any, table: str, mode: str = "ACCESS EXCLUSIVE"):
    """Hold a lock; ``SHARE`` lets readers pass and stops writers."""
    query = sql.SQL("LOCK TABLE {} IN {} MODE")
    url = demo.environment["DATABASE_URL"]
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(query.format(sql.Identifier(table), sql.SQL(mode)))
        yield


async def waiting(demo: Any, table: str) -> list[int]:
    """Wait until somebody waits for a table; return the backends that do."""

    async def backends():
        return await rows(
            demo,
            "SELECT pid FROM pg_locks WHERE NOT granted AND relation = %s::regclass",
            table,
        )

    return [pid for (pid,) in await until(backends)]


async def cut_off(demo: Any, backends: list[int]) -> None:
    """End backends, as a database that is stopped does."""
    await rows(demo, "SELECT pg_terminate_backend(pid) FROM unnest(%s) pid", backends)


async def turns_are_free(demo: Any) -> bool:
    """Return whether nobody holds a turn; each replica holds its own name."""
    query = """
        SELECT (classid::bigint << 32) | objid::bigint
        FROM pg_locks WHERE locktype = 'advisory'
    """
    held = {key for (key,) in await rows(demo, query)}
    return held <= {lock_key("", name) for name in demo.replicas}
