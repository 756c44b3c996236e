"""Slow tools, slow queries and slow models, and what goes on beside them."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.peer import Refused, state
from tests.weather.locks import INVOICES, SESSIONS, TASKS, locked, waiting

pytestmark = pytest.mark.processes

SHOW = "show me invoice 8812"
# More than the threads and the connections a replica has for queries.
MANY = 16


@pytest.fixture
async def replicas(make_peer):
    subject = f"slow-{secrets.token_hex(4)}"
    return await make_peer("replica-a", subject), await make_peer("replica-b", subject)


async def _answers(peer):
    """Return whether the replica's loop answers now."""
    return (await peer.http.get("/healthz", timeout=5)).status_code == 200


@pytest.mark.statement(45)
async def test_slow_tools_do_not_hold_up_the_event_loop(demo, replicas):
    _, b = replicas
    async with locked(demo, INVOICES):
        shown = [asyncio.ensure_future(b.send(SHOW)) for _ in range(MANY)]
        await waiting(demo, INVOICES)

        assert await _answers(b)
        # A tool that reads no invoice works as well.
        kept = await b.send("remember that I like short answers")
        assert state(kept) == "COMPLETED"
        assert not any(task.done() for task in shown)

    assert {state(task) for task in await asyncio.gather(*shown)} == {"COMPLETED"}


@pytest.mark.statement(45)
@pytest.mark.parametrize("table", [SESSIONS, TASKS])
async def test_slow_queries_do_not_hold_up_the_event_loop(demo, replicas, table):
    a, b = replicas
    async with locked(demo, table):
        sends = [asyncio.ensure_future(b.send(SHOW)) for _ in range(MANY)]
        await waiting(demo, table)

        assert await _answers(b)
        assert await _answers(a)
        assert not any(task.done() for task in sends)

    assert {state(task) for task in await asyncio.gather(*sends)} == {"COMPLETED"}
    assert state(await b.send(SHOW)) == "COMPLETED"


@pytest.mark.statement(45)
async def test_a_database_too_slow_for_one_replica_is_an_opaque_error(demo, replicas):
    _, b = replicas
    async with locked(demo, TASKS):
        sends = [asyncio.ensure_future(b.send(SHOW)) for _ in range(MANY)]
        done, _ = await asyncio.wait(sends, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(Refused) as refused:
            await done.pop()
        assert refused.value.code == -32603
        assert "error_id" in refused.value.message
        assert await _answers(b)
    await asyncio.wait(sends)
    assert state(await b.send(SHOW)) == "COMPLETED"
