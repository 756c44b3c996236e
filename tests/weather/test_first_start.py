"""Both replicas start together on an empty database, and are asked at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import peers_of
from tests.peer import state, texts
from tests.ports import free_port_base
from tests.weather.stored import interleaved, said, session_events
from web.demo.layout import Layout
from web.demo.supervisor import Demo

pytestmark = [pytest.mark.weather, pytest.mark.case(14)]

SUBJECT = "first"
TEXT = "show me invoice 8812"
ELSEWHERE = ("tests/weather/in_kolkata.py",)


@pytest.fixture(scope="module", params=["utc", "kolkata"])
def first_start(request):
    """A demo on a new database, and the tasks of its first twenty requests.

    Replica B may live in another time zone.
    """
    folder = Path(tempfile.mkdtemp(prefix="i8812-demo-"))
    base = free_port_base()
    parts = Layout(base).parts()
    if request.param == "kolkata":
        parts = [
            _elsewhere(part) if part.name == "replica-b" else part for part in parts
        ]
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    demo = Demo(port_base=base, var_dir=folder, environment=inherited, parts=parts)
    with demo as running:
        yield running, asyncio.run(_first_requests(running))
    shutil.rmtree(folder)


def _elsewhere(part):
    return replace(part, command=ELSEWHERE + part.command)


async def _first_requests(demo):
    """Half of them in one conversation, half in their own; in either store."""
    async with peers_of(demo) as make:
        peers = [await make(name, SUBJECT) for name in demo.replicas]
        sends = [
            peer.send(TEXT, context_id=context_id, sessions=sessions)
            for number in range(5)
            for peer in peers
            for context_id, sessions in [
                ("ctx-41", "shared"),
                (f"ctx-{number}", "shared" if number % 2 else "memory"),
            ]
        ]
        return await asyncio.gather(*sends)


def test_twenty_first_requests_meet_no_error(first_start):
    demo, tasks = first_start

    assert len(tasks) == 20
    assert {state(task) for task in tasks} == {"COMPLETED"}
    assert len({str(texts(task)) for task in tasks}) == 1
    logs = [path.read_text() for path in (demo.var_dir / "log").glob("*.log")]
    assert not any("Traceback" in log for log in logs)


async def test_every_one_of_them_is_stored(first_start):
    demo, tasks = first_start
    async with peers_of(demo) as make:
        listed = await (await make("router", SUBJECT)).rpc(
            "ListTasks", {"pageSize": 100}
        )
    events = await session_events(demo, SUBJECT, "ctx-41")

    assert {task["id"] for task in tasks} <= {task["id"] for task in listed["tasks"]}
    assert said(events).count(TEXT) == 10
    assert not interleaved(events)


async def test_replicas_in_two_time_zones_agree_on_the_order_of_tasks(first_start):
    demo, _ = first_start
    async with peers_of(demo) as make:
        a, b = [await make(name, "clocks") for name in demo.replicas]
        tasks = [await peer.send("list my invoices") for peer in (a, b, a, b)]
        for peer in (a, b):
            listed = (await peer.rpc("ListTasks", {}))["tasks"]
            assert [t["id"] for t in listed] == [t["id"] for t in reversed(tasks)]
    stamps = [task["status"]["timestamp"] for task in tasks]
    assert stamps == sorted(stamps)
    assert all(stamp.endswith("Z") for stamp in stamps)
