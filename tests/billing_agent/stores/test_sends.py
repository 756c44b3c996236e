from __future__ import annotations

import asyncio

import pytest
from a2a.server.cluster import TaskVersion

from billing_agent.stores.sends import Sends
from billing_agent.stores.tasks import TaskStore
from tests.billing_agent.stores.test_tasks import MINE, a_task

pytestmark = pytest.mark.statement(40)


@pytest.fixture
def sends(pool):
    return Sends(pool)


@pytest.fixture
def age(pool):
    """Make every claim look a minute old; no test waits."""

    async def age():
        async with pool.connection() as connection:
            await connection.execute(
                "UPDATE billing_agent_a2asend SET claimed_at = now() - interval '60 s'"
            )

    return age


async def test_a_repeated_send_gets_the_first_ones_task(sends):
    task_id, first = await sends.claim("client-1", "key", "")
    assert first
    assert await sends.claim("client-1", "key", "") == (task_id, False)
    other, first = await sends.claim("client-1", "other", "")
    assert first
    assert other != task_id


async def test_a_send_to_a_task_is_claimed_for_that_task(sends):
    assert await sends.claim("client-1", "key", "t1") == ("t1", True)
    assert await sends.claim("client-1", "key", "t1") == ("t1", False)


async def test_a_send_is_the_callers_own(sends):
    assert await sends.claim("client-1", "key", "t1") == ("t1", True)
    assert await sends.claim("client-2", "key", "t2") == ("t2", True)


async def test_of_fifty_equal_sends_at_once_one_is_first(pool):
    replicas = [Sends(pool) for _ in range(50)]
    claims = await asyncio.gather(*(one.claim("c", "key", "") for one in replicas))
    assert len({task_id for task_id, _ in claims}) == 1
    assert sum(first for _, first in claims) == 1


async def test_a_claim_lapses_only_when_its_task_never_came(pool, sends, age):
    await sends.claim("client-1", "kept", "t1")
    await sends.claim("client-1", "lapsed", "t2")
    await TaskStore(pool).save(a_task(), prev_version=TaskVersion.MISSING, context=MINE)
    assert await sends.claim("client-1", "lapsed", "t3") == ("t2", False)
    await age()
    assert await sends.claim("client-1", "kept", "t3") == ("t1", False)
    assert await sends.claim("client-1", "lapsed", "t3") == ("t3", True)
    assert await sends.claim("client-1", "lapsed", "t4") == ("t3", False)


async def test_a_claim_can_be_given_back_until_its_task_is_stored(pool, sends):
    await sends.claim("client-1", "stored", "t1")
    await sends.claim("client-1", "failed", "t2")
    await TaskStore(pool).save(a_task(), prev_version=TaskVersion.MISSING, context=MINE)
    for key in ("stored", "failed"):
        await sends.forget("client-1", key, stored_too=False)
    assert await sends.claim("client-1", "stored", "t3") == ("t1", False)
    assert await sends.claim("client-1", "failed", "t3") == ("t3", True)
    await sends.forget("client-1", "stored", stored_too=True)
    assert await sends.claim("client-1", "stored", "t3") == ("t3", True)


async def test_a_claim_for_a_silent_task_can_be_let_lapse(pool, sends, age):
    store = TaskStore(pool)
    for task_id in ("t1", "t2"):
        task = a_task(task_id=task_id)
        await store.save(task, prev_version=TaskVersion.MISSING, context=MINE)
        await sends.claim("client-1", task_id, task_id)
    assert not await sends.lapse("client-1", "t1")
    await age()
    async with pool.connection() as connection:
        await connection.execute(
            "UPDATE billing_agent_a2atask SET updated_at = now() - interval '60 s',"
            " heartbeat_at = now() - interval '60 s'"
        )
    await store.heartbeat(["t2"])
    assert await sends.lapse("client-1", "t1")
    assert not await sends.lapse("client-1", "t2")
    assert await sends.claim("client-1", "t1", "t1") == ("t1", True)
    assert await sends.claim("client-1", "t2", "t2") == ("t2", False)


async def test_old_claims_are_swept(sends, age):
    await sends.claim("client-1", "old", "t1")
    await age()
    await sends.claim("client-1", "new", "t2")
    await sends.sweep(30)
    assert await sends.claim("client-1", "old", "t3") == ("t3", True)
    assert await sends.claim("client-1", "new", "t3") == ("t2", False)
