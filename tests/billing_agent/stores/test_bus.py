from __future__ import annotations

import asyncio

import psycopg
import pytest

from billing_agent.stores.bus import Bus

BUS = "billing-agent bus"


class Ear:
    """A subscriber that keeps what it hears."""

    def __init__(self, bus, channel):
        self.heard = []
        self.gaps = 0
        self.leave = bus.subscribe(channel, self.heard.append, self.gap)

    def gap(self):
        self.gaps += 1


async def test_a_notification_reaches_every_bus(start_bus, eventually):
    here, there = await start_bus(), await start_bus()
    ears = [Ear(here, "news"), Ear(there, "news")]
    await eventually(lambda: all(ear.gaps == 1 for ear in ears))

    await here.notify("news", "Zürich 請求書 😀 a\u2028b")

    await eventually(lambda: all(ear.heard for ear in ears))
    assert [ear.heard for ear in ears] == [["Zürich 請求書 😀 a\u2028b"]] * 2


async def test_channels_do_not_mix(bus, eventually):
    one, two = Ear(bus, "One"), Ear(bus, 'two "quoted"')
    await eventually(lambda: one.gaps and two.gaps)

    await bus.notify("One", "1")
    await bus.notify('two "quoted"', "2")

    await eventually(lambda: one.heard and two.heard)
    assert (one.heard, two.heard) == (["1"], ["2"])


async def test_a_subscription_made_before_the_start_counts(conninfo, eventually):
    bus = Bus(conninfo)
    ear = Ear(bus, "news")
    assert not bus.connected
    await bus.start()
    try:
        await eventually(lambda: ear.gaps == 1)
        await bus.notify("news", "1")
        await eventually(lambda: ear.heard == ["1"])
    finally:
        await bus.stop()
    assert not bus.connected


async def test_who_left_hears_nothing_and_the_channel_is_let_go(bus, eventually):
    gone, stays = Ear(bus, "news"), Ear(bus, "other")
    await eventually(lambda: gone.gaps and stays.gaps)
    gone.leave()
    gone.leave()
    await eventually(lambda: bus._listening == {"other"})

    await bus.notify("news", "1")
    await bus.notify("other", "2")

    await eventually(lambda: stays.heard)
    assert gone.heard == []


async def test_leaving_and_coming_back_at_once_keeps_the_channel(bus, eventually):
    Ear(bus, "news").leave()
    ear = Ear(bus, "news")
    await eventually(lambda: ear.gaps)

    await bus.notify("news", "1")

    await eventually(lambda: ear.heard == ["1"])


async def test_a_killed_connection_comes_back_and_reports_the_gap(
    start_bus, kill, eventually
):
    bus, other = await start_bus(), await start_bus()
    ears = [Ear(bus, "news"), Ear(bus, "more"), Ear(other, "news")]
    await eventually(lambda: all(ear.gaps == 1 for ear in ears))

    assert await kill(BUS) == 2

    await eventually(lambda: all(ear.gaps == 2 for ear in ears))
    assert bus.connected
    await bus.notify("news", "after")
    await eventually(lambda: ears[0].heard == ears[2].heard == ["after"])


async def test_a_send_that_meets_the_loss_is_repeated(bus, kill, eventually):
    ear = Ear(bus, "news")
    await eventually(lambda: ear.gaps)
    killing = asyncio.create_task(kill(BUS))

    for number in range(200):
        await bus.notify("news", str(number))
        if killing.done() and ear.gaps > 1:
            break

    await eventually(lambda: ear.gaps == 2 and str(number) in ear.heard)


async def test_a_subscriber_that_raises_does_not_disturb_the_others(
    bus, eventually, caplog
):
    def broken(_payload):
        raise LookupError("broken subscriber")

    bus.subscribe("news", broken)
    ear = Ear(bus, "news")
    await eventually(lambda: ear.gaps)

    await bus.notify("news", "1")

    await eventually(lambda: ear.heard)
    assert "A subscriber of news failed" in caplog.text


async def test_a_payload_of_8000_bytes_is_refused(bus, eventually):
    ear = Ear(bus, "news")
    await eventually(lambda: ear.gaps)
    with pytest.raises(ValueError, match="8000"):
        await bus.notify("news", "é" * 4000)

    await bus.notify("news", "é" * 3999 + "x")

    await eventually(lambda: ear.heard)


async def test_a_bus_without_a_database_says_so():
    with pytest.raises(psycopg.OperationalError):
        await Bus("host=127.0.0.1 port=1 dbname=none").start()
