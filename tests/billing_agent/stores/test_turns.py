from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest

from billing_agent.errors import ConversationBusy
from billing_agent.stores import turns as module
from billing_agent.stores.turns import Turns, lock_key

TURNS = "billing-agent turns"


@pytest.fixture
async def start_turns(conninfo, start_bus):
    async with contextlib.AsyncExitStack() as stack:

        async def start():
            turns = Turns(conninfo, await start_bus())
            await turns.start()
            stack.push_async_callback(turns.stop)
            return turns

        yield start


@pytest.fixture
async def turns(start_turns):
    return await start_turns()


@pytest.fixture
async def locks(conninfo):
    """Count the advisory locks held in this database."""

    async def locks():
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                " AND database = (SELECT oid FROM pg_database"
                "                 WHERE datname = current_database())"
            )
            return (await cursor.fetchone())[0]

    return locks


class Room:
    """Fails when two are in it at once; remembers who came in which order."""

    def __init__(self):
        self.inside = 0
        self.came = []

    async def visit(self, turns, name, context="ctx-41", wait=10):
        async with turns.turn("client-1", context, wait):
            self.came.append(name)
            self.inside += 1
            assert self.inside == 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.inside -= 1


@contextlib.asynccontextmanager
async def held(turns, context="ctx-41"):
    """Hold a turn in a task of its own, as another request would."""
    taken, leave = asyncio.Event(), asyncio.Event()

    async def hold():
        async with turns.turn("client-1", context, 10):
            taken.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await taken.wait()
    try:
        yield holder
    finally:
        leave.set()
        await asyncio.wait({holder})


async def waiting_turn(turns):
    """Start to wait for the turn of ctx-41, and be at the head of the queue."""

    async def wait():
        async with turns.turn("client-1", "ctx-41", 10):
            pass

    waiter = asyncio.create_task(wait())
    while not turns._heads:
        await asyncio.sleep(0)
    return waiter


async def test_turns_come_in_their_order(turns):
    room = Room()
    async with held(turns):
        visits = []
        for number in range(10):
            visits.append(asyncio.create_task(room.visit(turns, number)))
            await asyncio.sleep(0)
        assert room.came == []
    await asyncio.gather(*visits)
    assert room.came == list(range(10))


@pytest.mark.statement(29)
async def test_fifty_turns_on_two_replicas_never_overlap(start_turns, locks):
    replicas = [await start_turns(), await start_turns()]
    room = Room()
    await asyncio.gather(*(room.visit(replicas[n % 2], n) for n in range(50)))
    assert sorted(room.came) == list(range(50))
    assert await locks() == 0


async def test_other_conversations_and_callers_do_not_wait(start_turns):
    here, there = await start_turns(), await start_turns()
    async with (
        held(here),
        here.turn("client-1", "ctx-42", 5),
        here.turn("client-2", "ctx-41", 5),
        there.turn("client-3", "ctx-41", 5),
    ):
        pass


def test_a_key_is_one_conversation_of_one_caller():
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "B")]
    keys = {lock_key(*pair) for pair in pairs}
    assert len(keys) == len(pairs)
    assert all(-(2**63) <= key < 2**63 for key in keys)


@pytest.mark.parametrize("where", ["same replica", "other replica"])
async def test_a_conversation_that_stays_busy_says_so(start_turns, where, locks):
    here = await start_turns()
    there = here if where == "same replica" else await start_turns()
    async with held(here):
        with pytest.raises(ConversationBusy) as refused:
            async with there.turn("client-1", "ctx-41", 0.05):
                pytest.fail("two at once")
        assert (refused.value.context_id, refused.value.waited) == ("ctx-41", 0.05)
    async with there.turn("client-1", "ctx-41", 10):
        assert await locks() == 1
    assert await locks() == 0


async def test_a_turn_freed_elsewhere_is_taken_without_asking_again(
    start_turns, monkeypatch
):
    monkeypatch.setattr(module, "RECHECK", 3600)
    here, there = await start_turns(), await start_turns()
    async with held(here):
        waiter = await waiting_turn(there)
    await asyncio.wait_for(waiter, 10)


async def test_waiting_turns_hold_no_connection(start_turns, conninfo, turns):
    other = await start_turns()
    async with held(other):
        waiters = [await waiting_turn(turns) for _ in range(20)]
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database()",
                (TURNS,),
            )
            assert await cursor.fetchone() == (2,)
    await asyncio.gather(*waiters)


async def test_a_turn_whose_work_fails_is_freed(turns, locks):
    with pytest.raises(LookupError):
        async with turns.turn("client-1", "ctx-41", 10):
            raise LookupError
    assert await locks() == 0


async def test_a_cancelled_turn_is_freed(turns, locks):
    async with held(turns) as holder:
        holder.cancel()
        await asyncio.wait({holder})
        assert await locks() == 0


@pytest.mark.parametrize("steps", range(12))
async def test_cancelled_at_any_step_a_waiter_leaves_no_lock(turns, locks, steps):
    waiter = asyncio.create_task(Room().visit(turns, "x"))
    for _ in range(steps):
        await asyncio.sleep(0.0005 if steps > 5 else 0)
    waiter.cancel()
    await asyncio.wait({waiter})
    assert await locks() == 0
    await Room().visit(turns, "next")


async def test_a_cancelled_waiter_lets_the_next_one_come(start_turns, locks):
    here, there = await start_turns(), await start_turns()
    room = Room()
    async with held(here):
        head = await waiting_turn(there)
        queued = [asyncio.create_task(room.visit(there, number)) for number in range(3)]
        await asyncio.sleep(0)
        head.cancel()
        queued[1].cancel()
        await asyncio.wait({head, queued[1]})
    await asyncio.gather(queued[0], queued[2])
    assert room.came == [0, 2]
    assert await locks() == 0


async def test_a_replica_that_dies_frees_its_turns(start_turns, monkeypatch):
    monkeypatch.setattr(module, "RECHECK", 0.05)
    dying, other = await start_turns(), await start_turns()
    async with held(dying):
        # Closing the connection is all the server sees of a kill -9.
        await dying.stop()
        await asyncio.wait_for(Room().visit(other, "next"), 10)


async def test_a_lost_connection_takes_its_turns_again(
    start_turns, kill, locks, eventually
):
    here, there = await start_turns(), await start_turns()
    async with held(here), held(here, "ctx-42"):
        lost = here._link._connection
        assert await kill(TURNS) == 2
        await eventually(
            lambda: here._link.connected and here._link._connection is not lost
        )
        assert await locks() == 2
        with pytest.raises(ConversationBusy):
            async with there.turn("client-1", "ctx-41", 0.05):
                pytest.fail("two at once")
    await Room().visit(there, "next")
    assert await locks() == 0


async def test_a_turn_taken_by_another_meanwhile_is_reported_and_not_given_back(
    start_turns, kill, eventually, caplog, monkeypatch
):
    here, there = await start_turns(), await start_turns()
    reopened = asyncio.Event()
    take_again = here._link._on_open

    async def late(execute):
        await reopened.wait()
        await take_again(execute)

    monkeypatch.setattr(here._link, "_on_open", late)
    async with held(here):
        lost = here._link._connection
        await kill(TURNS)
        async with held(there):
            reopened.set()
            await eventually(
                lambda: here._link.connected and here._link._connection is not lost
            )
            assert "Another replica has taken a turn" in caplog.text


async def test_a_turn_that_ends_while_it_is_taken_again_leaves_no_lock(
    turns, kill, locks, eventually, monkeypatch
):
    reached, go_on = asyncio.Event(), asyncio.Event()
    take_again = turns._link._on_open

    async def late(execute):
        async def slow(query, parameters=()):
            answer = await execute(query, parameters)
            reached.set()
            await go_on.wait()
            return answer

        await take_again(slow)

    monkeypatch.setattr(turns._link, "_on_open", late)
    async with held(turns):
        await kill(TURNS)
        await reached.wait()
    go_on.set()
    await eventually(lambda: turns._link.connected)
    assert await locks() == 0


async def test_a_turn_asked_for_while_the_connection_is_away_waits_for_it(turns, kill):
    await kill(TURNS)
    await Room().visit(turns, "next")


async def test_turns_without_a_database_say_so(bus):
    with pytest.raises(psycopg.OperationalError):
        await Turns("host=127.0.0.1 port=1 dbname=none", bus).start()
