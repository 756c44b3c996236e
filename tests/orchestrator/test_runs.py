"""The store of runs, on a real PostgreSQL, with real concurrency."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from django.core.management import call_command

from orchestrator import database, deployment, lease, runs
from orchestrator.config import Configuration, Sessions, Toggle
from orchestrator.errors import RunUnknown
from orchestrator.events import Kind
from orchestrator.models import Run, TurnState

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def closed_afterwards():
    yield
    await runs.close()


async def appended(run, kind=Kind.TOOL_CALLED, **data):
    return await runs.append(run.id, "replica-b", kind, data)


async def test_a_run_keeps_its_configuration():
    chosen = Configuration(continuity=Toggle.OFF, sessions=Sessions.SHARED)
    run = await runs.create(chosen, started_by="browser")
    kept = await runs.get(run.id)
    assert kept.configuration == chosen
    assert kept.started_by == "browser"
    assert kept.subject == f"orchestrator/{run.id}"
    assert (kept.context_id, kept.tenant) == ("ctx-41", "acme")


async def test_ids_are_short_and_readable():
    run = await runs.create(Configuration())
    assert len(run.id) == 6
    assert run.id.startswith("r-")
    assert not set(run.id[2:]) & set("01ilo")


async def test_a_taken_id_is_drawn_again(monkeypatch):
    letters = iter("aaaa" + "aaaa" + "bbbb")
    monkeypatch.setattr(runs.secrets, "choice", lambda _: next(letters))
    first = await runs.create(Configuration())
    second = await runs.create(Configuration())
    assert (first.id, second.id) == ("r-aaaa", "r-bbbb")


async def test_running_out_of_ids_is_said(monkeypatch):
    monkeypatch.setattr(runs, "_ID_LENGTHS", (4, 4))
    monkeypatch.setattr(runs.secrets, "choice", lambda _: "c")
    await runs.create(Configuration())
    with pytest.raises(RuntimeError, match="no free run id"):
        await runs.create(Configuration())


async def test_a_twin_outlives_its_run():
    run = await runs.create(Configuration())
    twin = await runs.create(Configuration(), twin_of=run.id)
    assert twin.twin_of_id == run.id
    await appended(run)
    assert await runs.delete(run.id)
    assert (await runs.get(twin.id)).twin_of_id is None
    assert await runs.read(run.id) == []
    assert not await runs.delete(run.id)


async def test_runs_are_listed_newest_first():
    made = [(await runs.create(Configuration())).id for _ in range(3)]
    assert await runs.newest() == []
    for run_id in made:
        await runs.append(run_id, "router", Kind.REPLICA_CHOSEN, {})
    await runs.create(Configuration())
    assert [run.id for run in await runs.newest()] == made[::-1]
    assert [run.id for run in await runs.newest(limit=1)] == made[-1:]


async def test_an_unknown_run_is_refused_by_name():
    with pytest.raises(RunUnknown, match="no run r-none"):
        await runs.append("r-none", "router", Kind.REPLICA_CHOSEN, {})
    with pytest.raises(RunUnknown) as caught:
        await runs.get("r-none")
    assert caught.value.run_id == "r-none"


async def test_events_are_read_back_as_stored():
    run = await runs.create(Configuration())
    text = 'Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne "quoted"'
    assert await appended(run, text=text, number=1, nothing=None) == 1
    assert await appended(run, kind=Kind.LEDGER_READ, stores=[]) == 2
    first, second = await runs.read(run.id)
    assert first.data == {"text": text, "number": 1, "nothing": None}
    assert (first.part, first.kind, first.turn) == ("replica-b", Kind.TOOL_CALLED, 0)
    assert first.at.tzinfo is not None
    assert [event.seq for event in await runs.read(run.id, after=1)] == [second.seq]


@pytest.mark.case(16)
async def test_many_writers_leave_no_gap_and_no_duplicate():
    run = await runs.create(Configuration())
    numbers = await asyncio.gather(*(appended(run, n=n) for n in range(60)))
    events = await runs.read(run.id)
    assert sorted(numbers) == [event.seq for event in events] == list(range(1, 61))
    assert sorted(event.data["n"] for event in events) == list(range(60))
    assert [event.at for event in events] == sorted(event.at for event in events)


@pytest.mark.case(16)
async def test_four_processes_append_to_one_run(other_processes):
    run = await runs.create(Configuration())
    numbers = await other_processes(run.id, processes=4, events=25)
    events = await runs.read(run.id)
    assert sorted(numbers) == [event.seq for event in events] == list(range(1, 101))
    assert (await runs.get(run.id)).last_seq == 100


_WRITER = """
import asyncio, sys, django
django.setup()
from orchestrator import deployment, runs
from orchestrator.events import Kind

async def write(run_id, events):
    for number in range(events):
        print(await runs.append(run_id, "replica-b", Kind.TOOL_CALLED, {"n": number}))
    await runs.close()

asyncio.run(write(sys.argv[1], int(sys.argv[2])))
"""


@pytest.fixture
def other_processes(tmp_path):
    import os
    import sys

    info = psycopg.conninfo.conninfo_to_dict(deployment.current().database)
    env = os.environ | {
        "DATABASE_URL": psycopg.conninfo.make_conninfo(**info),
        "DJANGO_SETTINGS_MODULE": "web.settings",
    }

    async def run(run_id, *, processes, events):
        started = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _WRITER,
                run_id,
                str(events),
                env=env,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(processes)
        ]
        outputs = [(await process.communicate())[0] for process in started]
        return [int(line) for output in outputs for line in output.split()]

    return run


async def test_an_event_belongs_to_the_turn_sent_last():
    run = await runs.create(Configuration())
    await runs.claim_turn(run.id, 1)
    await appended(run, kind=Kind.TURN_ENDED)
    await runs.claim_turn(run.id, 2)
    await appended(run)
    assert [event.turn for event in await runs.read(run.id)] == [1, 2]


async def test_listeners_hear_of_an_event_once_it_can_be_read():
    run = await runs.create(Configuration())
    listener = await psycopg.AsyncConnection.connect(
        deployment.current().database, autocommit=True
    )
    async with listener:
        await listener.execute(f"LISTEN {runs.CHANNEL}")
        await appended(run)
        async for note in listener.notifies(timeout=10, stop_after=1):
            assert note.payload == f"{run.id}:1"
            assert len(await runs.read(run.id)) == 1


@pytest.mark.case(18)
async def test_of_many_claims_of_a_turn_one_succeeds():
    run = await runs.create(Configuration())
    claims = await asyncio.gather(*(runs.claim_turn(run.id, 1) for _ in range(10)))
    assert sorted(claims) == [False] * 9 + [True]


async def test_the_next_turn_waits_for_the_end_of_this_one():
    run = await runs.create(Configuration())
    assert not await runs.claim_turn(run.id, 2)
    assert await runs.claim_turn(run.id, 1)
    assert not await runs.claim_turn(run.id, 2)
    await appended(run, kind=Kind.TURN_ENDED)
    assert not await runs.claim_turn(run.id, 1)
    assert await runs.claim_turn(run.id, 2)


async def test_a_failed_turn_may_be_claimed_again_once():
    run = await runs.create(Configuration())
    await runs.claim_turn(run.id, 1)
    await appended(run, kind=Kind.STEP_FAILED)
    assert (await runs.get(run.id)).turn_state == TurnState.FAILED
    assert not await runs.claim_turn(run.id, 2)
    claims = await asyncio.gather(*(runs.claim_turn(run.id, 1) for _ in range(5)))
    assert claims.count(True) == 1


async def test_a_turn_whose_sender_died_may_be_claimed_again():
    run = await runs.create(Configuration())
    await runs.claim_turn(run.id, 1)
    async with await psycopg.AsyncConnection.connect(
        deployment.current().database, autocommit=True
    ) as connection:
        await connection.execute(
            "UPDATE orchestrator_run SET renewed_at = now() - %s",
            [runs.ABANDONED_AFTER],
        )
    assert await runs.claim_turn(run.id, 1)
    assert not await runs.claim_turn(run.id, 1)


async def test_a_claim_is_renewed_apart_from_what_the_run_does(monkeypatch):
    monkeypatch.setattr(lease, "RENEWAL_SECONDS", 0.01)
    run = await runs.create(Configuration())
    await runs.claim_turn(run.id, 1)
    claimed = await runs.get(run.id)
    async with asyncio.timeout(10), lease.kept(run.id):
        while (await runs.get(run.id)).renewed_at == claimed.renewed_at:
            await asyncio.sleep(0)
    kept = await runs.get(run.id)
    assert kept.active_at == claimed.active_at
    assert not lease.is_abandoned(kept)


async def test_a_renewal_that_fails_is_tried_again(monkeypatch, caplog):
    monkeypatch.setattr(lease, "RENEWAL_SECONDS", 0)
    answers = iter([psycopg.OperationalError("gone"), TimeoutError("hung")])
    renewed = asyncio.Event()

    async def renew(run_id):
        for error in answers:
            raise error
        renewed.set()

    monkeypatch.setattr(runs, "renew_claim", renew)
    async with asyncio.timeout(10), lease.kept("r-7k3m"):
        await renewed.wait()
    assert caplog.text.count("Claim of r-7k3m not renewed") == 2


async def test_lost_connections_are_replaced():
    run = await runs.create(Configuration())
    own = await database.execute("SELECT pg_backend_pid()", [])
    async with await psycopg.AsyncConnection.connect(
        deployment.current().database, autocommit=True
    ) as connection:
        await connection.execute("SELECT pg_terminate_backend(%s, 10000)", own[0])
    assert await appended(run) == 1


async def test_a_database_that_hangs_is_not_waited_for(monkeypatch):
    run = await runs.create(Configuration())
    monkeypatch.setattr(database, "ANSWER_SECONDS", 0.1)
    try:
        with pytest.raises(psycopg.OperationalError):
            await database.execute("SELECT pg_sleep(600)", [])
    finally:
        monkeypatch.undo()
        await database.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE query = 'SELECT pg_sleep(600)'",
            [],
        )
    assert (await runs.get(run.id)).id == run.id


def test_each_event_loop_has_its_own_connections():
    async def use():
        run = await runs.create(Configuration())
        await runs.close()
        return await appended(run)

    async def used_and_closed():
        try:
            return await use()
        finally:
            await runs.close()

    assert [asyncio.run(used_and_closed()) for _ in range(2)] == [1, 1]


def test_django_reads_what_the_store_wrote():
    async def started_and_claimed():
        run = await runs.create(Configuration())
        await runs.claim_turn(run.id, 1)
        await runs.append(run.id, "router", Kind.REPLICA_CHOSEN, {"replica": "b"})
        await runs.close()
        return run.id

    run = Run.objects.get(id=asyncio.run(started_and_claimed()))
    assert (run.last_seq, run.turns_sent) == (1, 1)
    assert run.turn_state == TurnState.SENDING
    assert [str(event) for event in run.events.all()] == [f"{run.id} 1 replica-chosen"]


def test_the_migration_says_what_the_models_say():
    call_command("makemigrations", "orchestrator", check=True, dry_run=True)
