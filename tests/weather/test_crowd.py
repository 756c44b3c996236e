"""A hundred conversations, ten first turns each, all at once on two replicas."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import httpx
import psycopg
import pytest

from tests.billing_agent.contract.watch import rows
from tests.conftest import peers_of, running_demo
from tests.peer import Peer, state
from tests.weather.stored import interleaved, said, session_events

pytestmark = [pytest.mark.weather, pytest.mark.statement(29)]

CONTEXTS = 100
EVENTS = 4  # the message, a call, its result, the answer
WORDS = ("ada", "bo", "cy", "di", "eva", "flo", "gus", "hal", "ida", "joe")
CONNECTIONS = 100  # what PostgreSQL takes when nobody says more
TURNS = len(WORDS)
# Made once: a context of its own costs each client 20 ms.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class Crowd:
    """What became of a thousand sends.

    ``connections`` is the largest number of database connections that was seen,
    ``ledgers`` what each replica says its stores hold.
    """

    demo: Any
    sessions: str
    subject: str
    tasks: list[dict[str, Any]]
    connections: int
    ledgers: list[dict[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def patient_demo():
    """A demo that lets one subject ask a thousand things at once."""
    settings = {"RATE_BURST": "5000", "TURN_WAIT": "300", "BLOCKING_WAIT": "300"}
    with running_demo(**settings) as running:
        yield running


@pytest.fixture(scope="module", params=["shared", "memory"])
def crowd(request, patient_demo):
    subject = f"crowd-{secrets.token_hex(4)}"
    return asyncio.run(_rush(patient_demo, subject, request.param))


async def _rush(demo, subject, sessions):
    done = asyncio.Event()
    async with peers_of(demo) as make:
        peers = [await make(name, subject) for name in demo.replicas]
        counting = asyncio.create_task(_most_connections(demo, done))
        talks = [_talk(peers, f"ctx-{number}", sessions) for number in range(CONTEXTS)]
        tasks = [task for talk in await asyncio.gather(*talks) for task in talk]
        done.set()
        ledgers = [await _ledger(peer) for peer in peers]
    return Crowd(demo, sessions, subject, tasks, await counting, ledgers)


async def _talk(peers, context_id, sessions):
    """Say everything at once, half of it to each replica."""
    own = [OnItsOwn(peer) for peer in peers]
    options = {"context_id": context_id, "sessions": sessions}
    try:
        return await asyncio.gather(
            *(
                own[turn % 2].send(f"list my invoices, {word}", **options)
                for turn, word in enumerate(WORDS)
            )
        )
    finally:
        for peer in own:
            await peer.http.aclose()


class OnItsOwn(Peer):
    """The same peer with connections of its own: one pool of 1,000 is slow."""

    def __init__(self, peer):
        self.url = peer.url
        self.http = httpx.AsyncClient(
            base_url=peer.url, headers=peer.http.headers, timeout=300, verify=NO_TLS
        )


async def _most_connections(demo, done):
    query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = %s"
    most = 0
    async with await psycopg.AsyncConnection.connect(
        demo.environment["DATABASE_URL"], autocommit=True
    ) as connection:
        while not done.is_set():
            cursor = await connection.execute(query, ["client backend"])
            most = max(most, (await cursor.fetchone())[0])
            await asyncio.sleep(0.05)
    return most


async def _ledger(peer):
    stores = (await peer.http.get("/demo/ledger")).json()["stores"]
    return {entry["store"]: entry["sessions"] for entry in stores}


def test_every_turn_completes(crowd):
    assert len(crowd.tasks) == CONTEXTS * TURNS
    assert Counter(map(state, crowd.tasks)) == {"COMPLETED": CONTEXTS * TURNS}


def test_each_conversation_has_one_session_with_every_event(crowd):
    expected = {f"ctx-{number}" for number in range(CONTEXTS)}
    events = TURNS * EVENTS if crowd.sessions == "shared" else TURNS * EVENTS // 2
    for ledger in crowd.ledgers:
        held = ledger[crowd.sessions]
        assert len(held) == CONTEXTS
        assert {row["session_id"] for row in held} == expected
        assert {row["events"] for row in held} == {events}


async def test_no_two_turns_of_a_conversation_mix(crowd):
    """By the audit trail, which has what each turn did, in order, in both stores."""
    query = (
        "SELECT context_id, replica, task_id FROM billing_agent_auditentry"
        " WHERE subject LIKE %s ORDER BY context_id, {}id"
    )
    by_store = query.format("" if crowd.sessions == "shared" else "replica, ")
    entries = await rows(crowd.demo, by_store, f"%{crowd.subject}")
    turns = [turn for turn, _ in groupby(entries)]
    assert len(turns) == len(set(turns)) == CONTEXTS * TURNS


async def test_shared_sessions_hold_every_message_once_and_unmixed(crowd):
    if crowd.sessions != "shared":
        return
    for number in range(CONTEXTS):
        events = await session_events(crowd.demo, crowd.subject, f"ctx-{number}")
        heard = said(events)
        assert all(heard.count(word) == 1 for word in WORDS)
        assert not interleaved(events)


def test_database_connections_stay_few(crowd):
    assert 0 < crowd.connections < CONNECTIONS
