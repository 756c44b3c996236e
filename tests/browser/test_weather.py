"""Bad weather: lost sockets, reloads, double clicks, strangers, silent parts."""

from __future__ import annotations

import os
import signal

import pytest
from playwright.sync_api import expect

from orchestrator.config import Configuration, Toggle
from orchestrator.events import Kind
from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded
from tests.orchestrator.stored import OWNER

pytestmark = [pytest.mark.browser, pytest.mark.processes]

WHOLE = recorded()
ASKED = first_turn(Recording(), Happened()).events
LAST_OF_STEP_3 = len(ASKED)


class Wire:
    """The socket of a tab, which a test may cut and mend."""

    def __init__(self, tab):
        self.cut_off = False
        self._open = []
        tab.page.route_web_socket("**/ws/**", self._connected)

    def _connected(self, socket):
        if self.cut_off:
            socket.close(code=1013)
            return
        socket.connect_to_server()
        self._open.append(socket)

    def cut(self):
        self.cut_off = True
        while self._open:
            self._open.pop().close(code=1013)

    def mend(self):
        self.cut_off = False


def numbers(tab):
    return [int(text) for text in tab.page.locator("#events .seq").all_inner_texts()]


@pytest.mark.case(16)
def test_a_lost_socket_leaves_no_gap_and_no_duplicate(tab, database):
    run = database.store(ASKED[:13])
    wire = Wire(tab)
    tab.be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    wire.cut()
    expect(tab.page.locator("#bar")).to_be_visible()
    database.record(run, ASKED[13:16])
    tab.until(seq=16)
    wire.mend()
    tab.live()
    expect(tab.page.locator("#bar")).to_be_hidden()
    database.record(run, ASKED[16:])
    tab.until(seq=LAST_OF_STEP_3)
    shown = numbers(tab)
    assert shown == [*range(shown[0], LAST_OF_STEP_3 + 1)]


@pytest.mark.case(16)
def test_a_reload_in_the_middle_of_a_run_loses_nothing(tab, database):
    chosen = Configuration(affinity=Toggle.OFF)
    run = database.store(ASKED[:13], chosen)
    tab.be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    assert tab.cursor("status") == "running"
    tab.page.reload()
    tab.live()
    assert tab.cursor("status") == "running"
    database.record(run, ASKED[13:])
    tab.until(seq=LAST_OF_STEP_3, status="asked")
    shown = numbers(tab)
    assert shown == [*range(shown[0], LAST_OF_STEP_3 + 1)]
    assert tab.page.get_attribute("#switch-affinity", "aria-checked") == "false"


@pytest.mark.case(16)
def test_a_reload_at_the_question_keeps_it_and_the_reply_can_be_sent(tab):
    tab.visit("/").page.click("#start")
    tab.until(status="asked")
    tab.page.click("#step-3")
    tab.until(step=3)
    tab.page.reload()
    tab.live()
    assert "Which line item do you mean?" in tab.text("#conversation")
    tab.page.click("#onward")
    assert tab.verdict() == "remembered"


def test_the_back_button_shows_where_one_was(tab, database):
    run = database.store(WHOLE)
    tab.be_owner().visit(f"/runs/{run.id}/walk/1/").live()
    tab.page.click("#step-4")
    tab.until(step=4)
    tab.page.go_back()
    tab.until(step=1)


@pytest.mark.case(18)
@pytest.mark.parametrize("script", [True, False])
def test_a_double_click_sends_one_message(open_tab, database, script):
    tab = open_tab(java_script_enabled=script)
    tab.visit("/").page.click("#walk")
    tab.page.dblclick("#onward")
    tab.until(status="asked")
    sent = [e for e in database.read(tab.run_id) if e.kind is Kind.MESSAGE_SENT]
    assert [event.turn for event in sent] == [1]


@pytest.mark.case(18)
def test_a_double_click_on_the_start_button_sends_one_message_a_run(tab, database):
    tab.visit("/").page.dblclick("#start")
    tab.until(status="asked")
    sent = [e for e in database.read(tab.run_id) if e.kind is Kind.MESSAGE_SENT]
    assert len(sent) == 1


def test_clicks_on_a_switch_while_it_answers_start_one_twin(tab, database):
    run = database.store(WHOLE)
    tab.be_owner().visit(f"/runs/{run.id}/walk/4/").live()
    flips = []
    tab.page.on(
        "request", lambda sent: flips.append(sent) if "/flip/" in sent.url else None
    )
    tab.page.evaluate(
        "for (let n = 0; n < 3; n++) document.querySelector('#switch-affinity').click()"
    )
    tab.until_not(run=run.id).live()
    assert len(flips) == 1


@pytest.mark.case(17)
def test_the_seventh_tab_loads_like_the_first(open_tab, database):
    run = database.store(WHOLE)
    tabs = [open_tab()]
    tabs[0].be_owner()
    tabs += [open_tab(within=tabs[0]) for _ in range(6)]
    for tab in tabs:
        tab.page.set_default_timeout(3000)
        tab.visit(f"/runs/{run.id}/walk/4/").live()
    assert [len(tab.sockets) for tab in tabs] == [1] * 7
    pages = [url for tab in tabs for url in tab.requested if "/static/" not in url]
    assert len(pages) == 7


@pytest.mark.case(12)
def test_a_noisy_run_arrives_whole(tab):
    tab.visit("/").page.click("#walk")
    tab.page.click("#switch-output button[aria-pressed=false]")
    tab.page.wait_for_selector("#twin")
    tab.live()
    while tab.page.get_attribute("#verdict", "data-strip") == "open":
        step = tab.cursor("step")
        tab.page.locator("a#onward, button#onward").click()
        tab.until_not(step=step)
        if tab.cursor("step") in {"1", "4"}:
            tab.until_not(status="running")
    listed = []
    for step in range(1, 5):
        tab.page.click(f"#step-{step}")
        tab.until(step=step)
        listed += numbers(tab)
    recorded_events = tab.page.request.get(f"{tab.url}/runs/{tab.run_id}.json").json()
    assert listed == [event["seq"] for event in recorded_events["events"]]
    assert recorded_events["released"]["artifacts"] > 1


def test_another_browser_reads_and_follows_but_changes_nothing(open_tab, database):
    run = database.store(ASKED[:13])
    stranger = open_tab().visit(f"/runs/{run.id}/walk/3/").live()
    expect(stranger.page.locator("#read-only")).to_be_visible()
    expect(stranger.page.locator("#switch-affinity")).to_be_disabled()
    database.record(run, ASKED[13:])
    stranger.until(seq=LAST_OF_STEP_3)
    assert stranger.page.locator("button#onward").count() == 0
    stranger.page.keyboard.press("a")
    stranger.page.click("#own")
    stranger.until(step=0)
    assert stranger.run_id != run.id


def test_a_failed_step_is_retried_for_real(tab, database):
    broken = Recording().sent("Why was invoice 8812 higher than last month?")
    run = database.store(broken.verified("router").failed().events)
    tab.be_owner().visit(f"/runs/{run.id}/walk/1/").live()
    assert "could not be reached" in tab.text("#story")
    assert "0123456789ab" in tab.text("#error-id")
    tab.page.click("#retry")
    tab.until(status="asked")
    assert tab.page.locator("#failure").count() == 0


def test_a_button_whose_request_is_lost_says_so_and_works_again(tab):
    tab.expect_complaints().visit("/").page.click("#walk")
    tab.live()
    tab.page.route("**/next/", lambda route: route.abort())
    tab.page.click("#onward")
    expect(tab.page.locator("#refused")).to_be_visible()
    tab.page.unroute("**/next/")
    tab.page.click("#onward")
    tab.until(status="asked")
    expect(tab.page.locator("#refused")).to_be_hidden()


def test_polling_without_an_answer_is_no_button_that_failed(tab, database):
    run = database.store(ASKED)
    wire = Wire(tab)
    tab.expect_complaints().be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    tab.page.route("**/events/*", lambda route: route.abort())
    wire.cut()
    with tab.page.expect_event("requestfailed"):
        expect(tab.page.locator("#bar")).to_be_visible()
    expect(tab.page.locator("#refused")).to_be_hidden()
    tab.page.route("**/walk/1/", lambda route: route.abort())
    tab.page.click("#step-1")
    expect(tab.page.locator("#refused")).to_be_visible()
    wire.mend()
    tab.live()
    expect(tab.page.locator("#refused")).to_be_hidden()


def test_a_slow_answer_says_whom_it_waits_for(tab, database):
    run = database.store(ASKED[:13])
    tab.be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    waiting = tab.page.locator("#progress")
    expect(waiting).to_contain_text("still waiting for replica B", timeout=10_000)
    database.record(run, ASKED[13:])
    tab.until(status="asked")
    expect(waiting).to_be_hidden()


def test_a_replica_that_is_down_is_hollow_and_says_so(tab, demo, database):
    run = database.store(WHOLE)
    tab.be_owner().visit(f"/runs/{run.id}/walk/4/").live()
    replica = tab.page.locator("#health [data-part=replica-a]")
    expect(replica).to_have_attribute("data-up", "true", timeout=10_000)
    pid = demo.pid_of("replica-a")
    os.kill(pid, signal.SIGSTOP)
    try:
        expect(replica).to_contain_text("down since", timeout=15_000)
        hollow = tab.page.locator("#topology .node.part-replica-a use")
        expect(hollow).to_have_attribute("href", "#shape-circle-hollow")
        expect(tab.page.locator("#switch-affinity")).to_be_enabled()
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(replica).to_have_attribute("data-up", "true", timeout=15_000)


def test_focus_stays_on_the_control_a_push_replaces(tab, database):
    run = database.store(ASKED[:13])
    tab.be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    tab.page.focus("#back")
    database.record(run, ASKED[13:])
    tab.until(seq=LAST_OF_STEP_3)
    expect(tab.page.locator("#back")).to_be_focused()


def test_a_new_step_takes_the_focus_to_its_title(tab, database):
    run = database.store(WHOLE)
    tab.be_owner().visit(f"/runs/{run.id}/walk/1/").live()
    tab.page.click("#step-4")
    tab.until(step=4)
    expect(tab.page.locator("#title")).to_be_focused()


def test_arrivals_are_announced(tab, database):
    run = database.store(ASKED[:13])
    tab.be_owner().visit(f"/runs/{run.id}/walk/3/").live()
    database.record(run, ASKED[13:])
    voice = tab.page.locator("#voice")
    expect(voice).to_contain_text(f"{LAST_OF_STEP_3}: turn 1 ended", timeout=10_000)


def test_single_letters_can_be_turned_off(tab, database):
    run = database.store(WHOLE, visitor=OWNER)
    tab.be_owner().visit(f"/runs/{run.id}/walk/4/").live()
    tab.page.keyboard.press("?")
    help_dialog = tab.page.locator("#help")
    expect(help_dialog).to_be_visible()
    tab.page.uncheck("#single-keys")
    tab.page.keyboard.press("Escape")
    expect(help_dialog).to_be_hidden()
    tab.page.locator("#title").evaluate("title => title.focus()")
    tab.page.keyboard.press("a")
    tab.page.keyboard.press("ArrowLeft")
    tab.until(event=len(WHOLE) - 1)
    assert tab.run_id == run.id
