from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest

from billing_agent.stores.pool import AWAY_TIMEOUT, CHECKOUT_TIMEOUT, open_pool
from tests.weather.server import running_server

POOL = "billing-agent stores"


async def answer(pool):
    async with pool.connection() as connection:
        cursor = await connection.execute("SELECT 42")
        return await cursor.fetchone()


async def test_every_statement_commits_by_itself(pool):
    async with pool.connection() as connection:
        assert connection.autocommit


async def test_an_answer_of_a_server_that_vanished_is_not_waited_for(pool):
    # No keepalive is sent while something is: the kernel would try for a quarter hour.
    async with pool.connection() as connection:
        asked_for = connection.info.get_parameters()
    assert int(asked_for["tcp_user_timeout"]) <= 10_000


async def test_connections_closed_by_the_server_are_never_handed_out(pool, kill):
    await asyncio.gather(*(answer(pool) for _ in range(8)))

    assert await kill(POOL) > 1

    assert [await answer(pool) for _ in range(8)] == [(42,)] * 8


async def test_a_statement_that_meets_the_loss_fails_and_the_next_works(pool, kill):
    async with pool.connection() as connection:
        await kill(POOL)
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("SELECT 42")

    assert await answer(pool) == (42,)


async def test_a_pool_without_a_database_says_so(monkeypatch):
    monkeypatch.setattr("billing_agent.stores.pool.CONNECT_TIMEOUT", 1)
    with pytest.raises(psycopg.OperationalError):
        await open_pool("host=127.0.0.1 port=1 dbname=none", 2)


async def test_a_database_known_to_be_away_is_waited_for_briefly(monkeypatch):
    monkeypatch.setattr("billing_agent.stores.pool.RECONNECT_TIMEOUT", 0.2)
    monkeypatch.setattr("billing_agent.stores.pool.CHECKOUT_TIMEOUT", 1.5)
    with running_server() as server:
        pool = await open_pool(server.url, 2)
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            await answer(pool)
        while_away = pool.timeout

        server.start()

        async with asyncio.timeout(20):
            while pool.timeout == while_away:
                with contextlib.suppress(psycopg.OperationalError):
                    assert await answer(pool) == (42,)
        assert (while_away, pool.timeout) == (AWAY_TIMEOUT, 1.5)
        await pool.close()


async def test_a_database_with_no_room_for_more_connections_is_not_away(
    conninfo, monkeypatch, eventually
):
    monkeypatch.setattr("billing_agent.stores.pool.RECONNECT_TIMEOUT", 0.1)
    pool = await open_pool(conninfo, 3)
    pool.conninfo = "host=127.0.0.1 port=1"
    async with pool.connection(), contextlib.AsyncExitStack() as second:
        await second.enter_async_context(pool.connection())
        third = asyncio.ensure_future(answer(pool))
        await eventually(lambda: _gave_up(pool.get_stats()))

        assert pool.timeout == CHECKOUT_TIMEOUT
        await second.aclose()
        assert await third == (42,)
    await pool.close()


def _gave_up(stats):
    return "connections_errors" in stats and stats["pool_size"] == 2
