"""Replicas in this process, and what may befall them."""

from __future__ import annotations

import contextlib

import psycopg
import pytest

from tests.billing_agent.contract.in_process import InProcess
from tests.billing_agent.stores.conftest import (  # noqa: F401
    bus,
    conninfo,
    pool,
    start_bus,
)


@pytest.fixture
async def make_replica(pool, bus):  # noqa: F811
    """Return a factory of replicas in this process, see ``InProcess``."""
    async with contextlib.AsyncExitStack() as stack:

        def make(name, agent, limits=None, bus=bus, **config):
            replica = InProcess(name, pool, bus, agent, limits, **config)
            stack.push_async_callback(replica.close)
            return replica

        yield make


@pytest.fixture
async def deaf(start_bus):  # noqa: F811
    """Return a bus, and a block in which it hears nothing."""
    own = await start_bus()

    @contextlib.asynccontextmanager
    async def deaf():
        await own.stop()
        yield
        await own.start()

    return own, deaf


@pytest.fixture
def row_lock(conninfo):  # noqa: F811
    """Return a block in which a task's row can be read and not be written."""

    @contextlib.asynccontextmanager
    async def row_lock(task_id):
        query = "SELECT FROM billing_agent_a2atask WHERE id = %s FOR UPDATE"
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await connection.execute(query, [task_id])
            yield

    return row_lock
