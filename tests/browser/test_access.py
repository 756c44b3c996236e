"""Access: axe in both themes, narrow and wide; nothing overflows; the weight."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from orchestrator.config import Configuration, Output, Toggle
from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded

pytestmark = [pytest.mark.browser, pytest.mark.processes]

GENERATED = "9e1e4b2c-4b1c-4f7e-8d52-0c7f6a4d4c2a"
OTHER = "1b2c3d4e-4b1c-4f7e-8d52-0c7f6a4d9999"
NOISY = Configuration(output=Output.PER_EVENT)
FORGOT = Configuration(continuity=Toggle.OFF)
WHOLE = recorded()
ASKED = first_turn(Recording(), Happened()).events
FAILED = Recording().sent("Why was invoice 8812 higher?").verified("router").failed()
KILOBYTES = 1000


@pytest.fixture(scope="module")
def addresses(database):
    """Return an address for each kind of page, by name."""
    forgot = Happened(hook=False, sessions=(GENERATED, OTHER), found=False)
    runs = {
        "fresh": database.store(),
        "running": database.store(ASKED[:13]),
        "question": database.store(ASKED),
        "failed": database.store(FAILED.events),
        "remembered": database.store(WHOLE),
        "forgot": database.store(recorded(forgot), FORGOT),
        "noisy": database.store(recorded(Happened(noisy=True)), NOISY),
        "stranger": database.store(ASKED, visitor=""),
    }
    steps = {"fresh": 0, "running": 3, "question": 3, "failed": 1, "stranger": 3}
    walks = {
        name: f"/runs/{run.id}/walk/{steps.get(name, 4)}/" for name, run in runs.items()
    }
    return {
        "start": "/",
        "last step": f"/runs/{runs['remembered'].id}/walk/5/",
        "earlier event": f"/runs/{runs['forgot'].id}/walk/4/?event=24",
        **walks,
    }


PAGES = [
    "start",
    "fresh",
    "running",
    "question",
    "failed",
    "remembered",
    "forgot",
    "noisy",
    "stranger",
    "last step",
    "earlier event",
]


def opened(open_tab, address, theme, width):
    options = {"color_scheme": theme, "viewport": {"width": width, "height": 800}}
    return open_tab(**options).be_owner().visit(address)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing(open_tab, addresses, width, theme):
    tab = opened(open_tab, addresses["start"], theme, width)
    for name in PAGES:
        tab.visit(addresses[name])
        results = Axe().run(tab.page)
        assert results.violations_count == 0, f"{name}: {results.generate_report()}"


def test_axe_finds_nothing_on_an_error_page(open_tab):
    tab = open_tab().expect_complaints().visit("/runs/r-none/")
    results = Axe().run(tab.page)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_dialogs(open_tab, addresses, theme):
    tab = opened(open_tab, addresses["remembered"], theme, 1280).live()
    tab.page.keyboard.press("?")
    results = Axe().run(tab.page)
    assert results.violations_count == 0, results.generate_report()


def test_axe_finds_nothing_in_the_sheet_of_switches(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 390)
    tab.page.click("#sheet")
    assert tab.page.is_visible("#switch-affinity")
    results = Axe().run(tab.page)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("width", [320, 390, 640, 900, 1199, 1280, 1440, 1920])
def test_nothing_overflows(open_tab, addresses, width):
    tab = opened(open_tab, addresses["start"], "light", width)
    for name in PAGES:
        tab.visit(addresses[name])
        found = tab.page.evaluate(
            """() => [...document.querySelectorAll("main *, header *, footer *")]
            .filter(element => element.checkVisibility())
            .filter(element => !element.closest(".visually-hidden, svg, pre"))
            .filter(element => {
              const box = element.getBoundingClientRect();
              return box.width > 1 && box.right > innerWidth + 0.5;
            }).map(element => element.outerHTML.slice(0, 80))"""
        )
        assert found == [], name
        scrolled = tab.page.evaluate("document.documentElement.scrollWidth")
        assert scrolled <= width, name


@pytest.mark.parametrize("width", [390, 1280])
def test_controls_are_large_enough(open_tab, addresses, width):
    tab = opened(open_tab, addresses["question"], "light", width)
    for control in tab.page.locator("button:visible, a.button:visible, a.step").all():
        box = control.bounding_box()
        assert box["height"] >= 32, control.inner_text()
        assert box["width"] >= 24, control.inner_text()
    for control in tab.page.locator("#moves a:visible, #moves button:visible").all():
        assert control.bounding_box()["height"] >= 44


def test_at_five_hundred_percent_a_page_is_one_column(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 320)
    lefts = tab.page.evaluate(
        "[...document.querySelectorAll('.column')]"
        ".map(column => column.getBoundingClientRect().left)"
    )
    assert len(set(lefts)) == 1


def test_at_four_hundred_percent_the_controls_leave_room_to_read(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 320)
    tab.page.set_viewport_size({"width": 320, "height": 256})
    for id in ("verdict", "moves"):
        position = tab.page.eval_on_selector(
            f"#{id}",
            "part => getComputedStyle(part.closest('.controls') ?? part).position",
        )
        assert position == "static"


def test_a_chosen_theme_stays(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 1280)
    background = "getComputedStyle(document.body).backgroundColor"
    bright = tab.page.evaluate(background)
    tab.page.click("button[name=theme][value=dark]")
    tab.page.wait_for_selector("html[data-theme=dark]")
    dark = tab.page.evaluate(background)
    assert dark != bright
    tab.visit("/")
    assert tab.page.evaluate(background) == dark


def test_a_chosen_theme_leaves_the_reader_where_they_are(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 1280).live()
    tab.page.keyboard.press("3")
    tab.until(step=3)
    tab.page.click("button[name=theme][value=dark]")
    tab.page.wait_for_selector("html[data-theme=dark]")
    tab.until(step=3)


def test_no_motion_for_those_who_want_none(open_tab, addresses, database):
    # Nothing moves for a turn whose sender has died.
    database.renew(re.search(r"r-\w+", addresses["running"])[0])
    tab = open_tab(reduced_motion="reduce").be_owner().visit(addresses["running"])
    animation = "getComputedStyle(document.querySelector('.ring')).animationName"
    assert tab.page.evaluate(animation) == "none"


def test_first_page_weight(open_tab, addresses):
    tab = open_tab().be_owner()
    received = []
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Network.enable")
    session.on(
        "Network.loadingFinished",
        lambda event: received.append(event["encodedDataLength"]),
    )
    tab.visit(addresses["noisy"]).live()
    assert 0 < sum(received) <= 150 * KILOBYTES


def test_every_kind_of_landmark_is_there(open_tab, addresses):
    tab = opened(open_tab, addresses["remembered"], "light", 1280)
    for landmark in ("header", "nav", "main", "aside", "footer", "h1"):
        assert tab.page.locator(landmark).count() >= 1
    assert tab.page.locator("h1").count() == 1
    assert tab.page.get_attribute("#verdict", "role") == "status"
    for target in tab.page.locator(".skip a").all():
        assert tab.page.locator(target.get_attribute("href")).count() == 1
