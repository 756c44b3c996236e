"""The socket of a page: nothing missed, nothing twice, nothing for strangers."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator

from orchestrator import consumers, health, parts, runs, story, visitors
from orchestrator.errors import RunUnknown
from orchestrator.sockets import websocket_urlpatterns
from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded
from tests.orchestrator.stored import OWNER, store

pytestmark = pytest.mark.django_db(transaction=True)

WHOLE = recorded()
ASKED = first_turn(Recording(), Happened()).events
SOCKETS = URLRouter(websocket_urlpatterns)


@pytest.fixture(autouse=True)
async def closed_afterwards(settings):
    settings.REPLICAS = {}
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    yield
    await health.aclose()
    await runs.close()


class Tab:
    """A browser tab with its socket."""

    def __init__(self, run, visitor=OWNER):
        cookie = f"theme=dark; {visitors.COOKIE}={visitor}"
        headers = [(b"cookie", cookie.encode())]
        self.run = run
        self.socket = WebsocketCommunicator(SOCKETS, f"/ws/runs/{run.id}/", headers)

    async def __aenter__(self):
        connected, _ = await self.socket.connect()
        assert connected
        return self

    async def __aexit__(self, *_):
        await self.socket.disconnect()

    async def say(self, **message):
        await self.socket.send_to(text_data=json.dumps(message))

    async def stand(self, step, seq=None, have=""):
        await self.say(do="goto", step=step, seq=seq, have=have)

    async def hear(self):
        return await self.socket.receive_from(timeout=5)

    async def hears_nothing(self):
        return await self.socket.receive_nothing(timeout=0.2)


async def announce(run, seq):
    message = {"type": "run.event", "seq": seq}
    await get_channel_layer().group_send(f"run.{run.id}", message)


async def appended(run, events):
    """Record events and announce each, as the web process does."""
    for event in events:
        seq = await runs.append(run.id, event.part, event.kind, event.data)
        await announce(run, seq)


def cursor(html):
    tag = re.match(r'<div id="cursor"[^>]*>', html)[0]
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', tag))


def ids(html):
    return re.findall(r'<\w+ id="(\w+)" hx-swap-oob', html)


async def test_a_page_that_says_where_it_stands_gets_what_it_lacks():
    run = await store(ASKED)
    async with Tab(run) as tab:
        await tab.stand(3)
        html = await tab.hear()
    assert ids(html) == [*parts.NAMES]
    assert cursor(html)["seq"] == str(len(ASKED))


async def test_a_page_that_is_current_gets_nothing():
    run = await store(ASKED)
    async with Tab(run) as tab:
        await tab.stand(3)
        have = cursor(await tab.hear())["have"]
        await tab.stand(3, have=have)
        assert await tab.hears_nothing()


async def test_a_new_event_brings_the_parts_that_changed_and_the_cursor():
    run = await store(ASKED[:-1])
    async with Tab(run) as tab:
        await tab.stand(3)
        await tab.hear()
        await appended(run, ASKED[-1:])
        html = await tab.hear()
    assert ids(html)[0] == "cursor"
    assert "events" in ids(html)
    assert "switches" not in ids(html)


@pytest.mark.case(12)
async def test_a_burst_is_shown_together_and_complete():
    run = await store(ASKED[:1])
    pushes = []
    async with Tab(run) as tab:
        await tab.stand(1)
        await tab.hear()
        await appended(run, ASKED[1:])
        while not pushes or cursor(pushes[-1])["seq"] != str(len(ASKED)):
            pushes.append(await tab.hear())
    assert len(pushes) < len(ASKED) - 1
    seqs = [int(cursor(html)["seq"]) for html in pushes]
    assert seqs == sorted(set(seqs))


async def test_a_page_elsewhere_keeps_its_place():
    run = await store(ASKED[:-1])
    async with Tab(run) as tab:
        await tab.stand(2, 5)
        await tab.hear()
        await appended(run, ASKED[-1:])
        shown = cursor(await tab.hear())
    assert (shown["step"], shown["event"], shown["at"]) == ("2", "5", "5")
    assert shown["seq"] == str(len(ASKED))


@pytest.mark.case(16)
async def test_a_gap_is_filled():
    run = await store(ASKED[:3])
    async with Tab(run) as tab:
        await tab.stand(3)
        await tab.hear()
        for event in ASKED[3:]:
            await runs.append(run.id, event.part, event.kind, event.data)
        await get_channel_layer().group_send(f"run.{run.id}", {"type": "run.gap"})
        html = await tab.hear()
    assert cursor(html)["seq"] == str(len(ASKED))
    assert html.count('class="event ') == sum(1 for _ in step_three(html))


def step_three(html):
    return re.finditer(r'id="event-\d+"', html)


@pytest.mark.case(16)
async def test_a_page_that_comes_back_misses_nothing_and_gets_nothing_twice():
    run = await store(ASKED[:3])
    async with Tab(run) as tab:
        await tab.stand(3)
        have = cursor(await tab.hear())["have"]
    await appended(run, ASKED[3:])
    async with Tab(run) as tab:
        await tab.stand(3, have=have)
        html = await tab.hear()
        assert await tab.hears_nothing()
    shown = [int(seq) for seq in re.findall(r'id="event-(\d+)"', html)]
    assert shown == sorted(set(shown))
    assert shown[-1] == len(ASKED)


async def test_two_hundred_pages_render_each_state_once(monkeypatch):
    monkeypatch.setattr(consumers, "TICK_SECONDS", 60)
    # However long two hundred pages take to open, the clock changes nothing on them.
    monkeypatch.setattr(parts, "WAIT_NOTICE", timedelta(hours=1))
    monkeypatch.setattr(runs, "ABANDONED_AFTER", timedelta(hours=1))
    rendered = []
    context = parts.context
    monkeypatch.setattr(
        parts, "context", lambda *seen: rendered.append(seen) or context(*seen)
    )
    run = await store(ASKED[:-1])
    tabs = [Tab(run, visitor="") for _ in range(200)]
    for tab in tabs:
        await tab.__aenter__()
        await tab.stand(3)
        await tab.hear()
    assert len(rendered) == 1
    await appended(run, ASKED[-1:])
    shown = [cursor(await tab.hear())["seq"] for tab in tabs]
    assert set(shown) == {str(len(ASKED))}
    assert len(rendered) == 2
    for tab in tabs:
        await tab.__aexit__()


async def test_a_part_that_goes_down_is_told(monkeypatch):
    monkeypatch.setattr(consumers, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0)
    run = await store(ASKED)
    async with Tab(run) as tab:
        await tab.stand(3)
        html = await tab.hear()
        while "down since" not in html:
            html = await tab.hear()
    assert ids(html)[0] == "cursor"
    assert "health" in ids(html)


async def test_a_turn_that_falls_silent_is_told(monkeypatch):
    from datetime import timedelta

    monkeypatch.setattr(consumers, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(parts, "WAIT_NOTICE", timedelta(seconds=0.2))
    run = await store(ASKED[:5])
    async with Tab(run) as tab:
        await tab.stand(2)
        html = await tab.hear()
        while "still waiting for replica B" not in html:
            html = await tab.hear()


# messages up


def error(html):
    return re.search(r'data-error="([^"]+)"', html)[1]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"do": "dance"}, "unknown-message"),
        ({}, "unknown-message"),
        ({"do": "goto", "step": 9}, "unknown-place"),
        ({"do": "goto", "step": "1"}, "unknown-place"),
        ({"do": "goto", "step": True}, "unknown-place"),
        ({"do": "goto", "step": 1, "seq": "x"}, "unknown-place"),
        ({"do": "goto", "step": 1, "run": "r-other"}, "foreign-run"),
        ({"do": "next", "run": "r-other"}, "foreign-run"),
    ],
)
async def test_what_is_not_understood_gets_one_typed_error(message, kind):
    async with Tab(await store(ASKED)) as tab:
        await tab.say(**message)
        assert error(await tab.hear()) == kind
        assert await tab.hears_nothing()


@pytest.mark.parametrize("text", ["{", "[]", '"goto"', "null", "[" * 100_000])
async def test_what_is_no_message_gets_one_typed_error(text):
    async with Tab(await store(ASKED)) as tab:
        await tab.socket.send_to(text_data=text)
        assert error(await tab.hear()) == "unknown-message"


async def test_bytes_get_one_typed_error():
    async with Tab(await store(ASKED)) as tab:
        await tab.socket.send_to(bytes_data=b"\x00")
        assert error(await tab.hear()) == "unknown-message"


@pytest.mark.parametrize("visitor", ["", "x" * 32])
async def test_only_the_owner_goes_on(visitor, monkeypatch):
    sent = []
    monkeypatch.setattr(story, "send_turn", lambda *call: sent.append(call))
    async with Tab(await store(ASKED), visitor) as tab:
        await tab.say(do="next")
        assert error(await tab.hear()) == "not-yours"
    assert sent == []


async def test_the_owner_goes_through_what_is_recorded():
    async with Tab(await store(ASKED)) as tab:
        await tab.stand(1, 1)
        await tab.hear()
        await tab.say(do="next")
        assert cursor(await tab.hear())["event"] == "2"


async def test_the_owner_sends_the_next_turn(monkeypatch):
    sent = asyncio.Queue()

    async def send_turn(run, turn):
        await sent.put(turn)
        return True

    monkeypatch.setattr(story, "send_turn", send_turn)
    async with Tab(await store(ASKED)) as tab:
        await tab.stand(3)
        await tab.hear()
        await tab.say(do="next")
        assert cursor(await tab.hear())["step"] == "4"
        assert await asyncio.wait_for(sent.get(), 5) == 2


async def test_a_reader_may_stand_anywhere():
    async with Tab(await store(WHOLE), visitor="") as tab:
        await tab.stand(4)
        html = await tab.hear()
    assert 'data-strip="remembered"' in html
    assert "formaction" not in html[html.index('id="moves"') :]


async def test_an_unknown_run_has_no_socket():
    socket = WebsocketCommunicator(SOCKETS, "/ws/runs/r-none/")
    connected, _ = await socket.connect()
    assert not connected


@pytest.mark.parametrize(
    "path", ["/", "/ws/", "/ws/runs/", "/ws/runs/é/", f"/ws/runs/{'r' * 200}/"]
)
async def test_what_is_no_address_of_a_run_has_no_socket(path):
    connected, _ = await WebsocketCommunicator(SOCKETS, path).connect()
    assert not connected


async def test_a_failure_closes_the_socket_so_that_the_page_comes_back(monkeypatch):
    async with Tab(await store(ASKED[:-1])) as tab:
        await tab.stand(3)
        await tab.hear()

        async def gone(*_):
            raise RunUnknown("r-gone")

        monkeypatch.setattr(consumers.RunConsumer, "_seen", gone)
        await announce(tab.run, len(ASKED))
        closed = await tab.socket.receive_output(timeout=5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1013)


async def test_a_page_without_a_place_hears_of_nothing():
    run = await store(ASKED[:3])
    async with Tab(run) as tab:
        await appended(run, ASKED[3:])
        assert await tab.hears_nothing()
