"""Queries off the event loop: bounded, cancellable, and healed by themselves."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import connection

from billing_agent.agent.database import THREADS, in_database
from billing_agent.models import Invoice


def backend():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def kill(pids):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids]
        )


@pytest.mark.statement(45)
async def test_a_query_runs_on_another_thread(committed):
    there = await in_database(threading.get_ident)
    assert there != threading.get_ident()


async def test_a_slow_query_leaves_the_loop_free(committed):
    released = threading.Event()
    query = asyncio.ensure_future(in_database(released.wait, 10))
    await asyncio.sleep(0)
    # Only a free loop gets here while the query waits for it.
    released.set()
    assert await query


async def test_queries_share_a_few_connections(committed):
    pids = await asyncio.gather(*(in_database(backend) for _ in range(40)))
    assert len(set(pids)) <= THREADS


async def test_a_connection_is_kept_from_query_to_query(committed):
    pids = {await in_database(backend) for _ in range(20)}
    assert len(pids) <= THREADS


async def test_connections_that_the_server_closed_are_replaced(committed):
    pids = await asyncio.gather(*(in_database(backend) for _ in range(40)))

    # From a connection of its own, as a restart would come from outside.
    def kill_all():
        kill(list(set(pids)))
        connection.close()

    thread = threading.Thread(target=kill_all)
    thread.start()
    thread.join()
    after = await asyncio.gather(*(in_database(backend) for _ in range(40)))
    assert set(after).isdisjoint(pids)


async def test_a_cancelled_caller_does_not_wait_for_the_query(committed):
    started, released = threading.Event(), threading.Event()

    def slow():
        started.set()
        released.wait(10)

    query = asyncio.ensure_future(in_database(slow))
    assert await asyncio.to_thread(started.wait, 10)
    query.cancel()
    await asyncio.wait({query}, timeout=5)
    assert query.cancelled()
    released.set()


async def test_an_error_of_the_query_reaches_the_caller(committed):
    with pytest.raises(Invoice.DoesNotExist):
        await in_database(Invoice.objects.get, number=1)
