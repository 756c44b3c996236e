"""A pool, a bus and both kinds of session service over the test database."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest
from django.db import connection
from google.adk.sessions import InMemorySessionService
from psycopg.conninfo import make_conninfo

from billing_agent.stores.bus import Bus
from billing_agent.stores.pool import open_pool
from billing_agent.stores.scope import ScopedSessionService
from billing_agent.stores.sessions import SessionService


@pytest.fixture
def conninfo(transactional_db):
    settings = connection.settings_dict
    return make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
    )


@pytest.fixture
async def pool(conninfo):
    pool = await open_pool(conninfo, 4)
    yield pool
    await pool.close()


@pytest.fixture
async def start_bus(conninfo):
    """Start any number of buses, each as another replica would."""
    async with contextlib.AsyncExitStack() as stack:

        async def start():
            bus = Bus(conninfo)
            await bus.start()
            stack.push_async_callback(bus.stop)
            return bus

        yield start


@pytest.fixture
async def bus(start_bus):
    return await start_bus()


@pytest.fixture
async def kill(conninfo):
    """End the backends of an application name; say how many there were."""

    async def kill(name):
        async with await psycopg.AsyncConnection.connect(
            conninfo, autocommit=True
        ) as own:
            cursor = await own.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database()",
                (name,),
            )
            return cursor.rowcount

    return kill


@pytest.fixture
def eventually():
    """Wait until a condition holds, ten seconds at most."""

    async def eventually(condition):
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.005)

    return eventually


with_database = pytest.mark.django_db(transaction=True)


@pytest.fixture(
    params=[
        "memory",
        "memory scoped",
        pytest.param("postgres", marks=with_database),
        pytest.param("postgres scoped", marks=with_database),
    ]
)
def session_store(request):
    """The same cases hold for ADK's own service and ours, plain and scoped."""
    kind, _, scoped = request.param.partition(" ")
    store = InMemorySessionService()
    if kind == "postgres":
        store = SessionService(request.getfixturevalue("pool"))
    return ScopedSessionService(store, "client-1") if scoped else store
