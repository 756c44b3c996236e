"""Looks at a demo's tables from outside, and waits for what it wants to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg


async def rows(demo: Any, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one query on the demo's database."""
    async with await psycopg.AsyncConnection.connect(
        demo.environment["DATABASE_URL"], autocommit=True
    ) as connection:
        cursor = await connection.execute(query, values)
        return await cursor.fetchall() if cursor.description else []


async def model_calls(demo: Any, task_id: str) -> int:
    """Return how many invoices an audit has looked at: one model call each."""
    query = (
        "SELECT count(*) FROM billing_agent_auditentry"
        " WHERE task_id = %s AND action = 'tool-call'"
    )
    return (await rows(demo, query, task_id))[0][0]


async def until(condition: Callable[[], Awaitable[Any]], deadline: float = 20) -> Any:
    """Wait until a condition is true and return its value."""
    async with asyncio.timeout(deadline):
        while not (value := await condition()):
            await asyncio.sleep(0.02)
        return value


async def steady(read: Callable[[], Awaitable[Any]], seconds: float) -> Any:
    """Return a value after making sure that it stays what it is for some seconds."""
    value = await read()
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.05)
        assert await read() == value
    return value
