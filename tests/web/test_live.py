"""Notifications of the database reach the open pages of their run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings

from web.demo.live import Live

WITHIN = 10


@asynccontextmanager
async def live():
    """Run a ``Live`` and yield the channel layer it sends to, past its first gap."""
    listener = Live(settings.DATABASE_URL)
    layer = get_channel_layer()
    await layer.group_add("run.r-0000", "probe")
    await listener.start()
    try:
        await receive(layer, "probe", "run.gap")
        await layer.group_discard("run.r-0000", "probe")
        yield layer
    finally:
        await listener.stop()


@pytest.fixture(autouse=True)
def fresh_layer(monkeypatch):
    layer = InMemoryChannelLayer()
    monkeypatch.setattr("web.demo.live.get_channel_layer", lambda: layer)
    monkeypatch.setattr(f"{__name__}.get_channel_layer", lambda: layer)
    return layer


async def notify(*payloads):
    connection = await psycopg.AsyncConnection.connect(
        settings.DATABASE_URL, autocommit=True
    )
    async with connection:
        for payload in payloads:
            await connection.execute("SELECT pg_notify('run_events', %s)", [payload])


async def receive(layer, channel, kind="run.event"):
    """Return the next message of one kind."""
    async with asyncio.timeout(WITHIN):
        while True:
            message = await layer.receive(channel)
            if message["type"] == kind:
                return message


async def test_event_reaches_the_pages_of_its_run():
    async with live() as layer:
        await layer.group_add("run.r-1a2b", "page")
        await notify("r-1a2b:7")
        assert await receive(layer, "page") == {"type": "run.event", "seq": 7}


async def test_event_of_another_run_does_not():
    async with live() as layer:
        await layer.group_add("run.r-1a2b", "page")
        await notify("r-9z9z:1", "r-1a2b:2")
        assert (await receive(layer, "page"))["seq"] == 2


async def test_events_of_a_burst_are_told_in_order_up_to_the_newest():
    async with live() as layer:
        await layer.group_add("run.r-1a2b", "page")
        await notify(*(f"r-1a2b:{seq}" for seq in range(1, 21)))
        got = [(await receive(layer, "page"))["seq"]]
        while got[-1] < 20:
            got.append((await receive(layer, "page"))["seq"])
        assert got == sorted(set(got))


async def test_lost_connection_is_a_gap_for_every_run_somebody_looks_at():
    async with live() as layer:
        await layer.group_add("run.r-1a2b", "first")
        await layer.group_add("run.r-9z9z", "second")
        await layer.group_add("something-else", "third")
        await _end_listening_connections()
        for page in ("first", "second"):
            assert await receive(layer, page, "run.gap") == {"type": "run.gap"}
        await notify("r-1a2b:3")
        assert (await receive(layer, "first"))["seq"] == 3
        assert "third" not in layer.channels


async def test_start_without_a_database_fails():
    with pytest.raises(psycopg.OperationalError):
        await Live("postgresql://127.0.0.1:1/nowhere").start()


async def _end_listening_connections():
    connection = await psycopg.AsyncConnection.connect(
        settings.DATABASE_URL, autocommit=True
    )
    async with connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
        )
