"""The controls at the foot of the walkthrough: what a second press meets."""

from __future__ import annotations

import pytest

from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded

pytestmark = [pytest.mark.browser, pytest.mark.processes]
ASKED = first_turn(Recording(), Happened()).events
WHOLE = recorded()


def slot(tab):
    box = tab.page.locator("#onward").bounding_box()
    return box["x"], box["width"]


@pytest.mark.parametrize("key", ["Space", "PageDown", "ArrowRight"])
def test_past_the_last_event_a_key_does_not_scroll_the_page(tab, database, key):
    run = database.store(WHOLE)
    tab.be_owner().visit(f"/runs/{run.id}/walk/5/").live()
    assert tab.page.locator("span#next").count() == 1
    assert tab.page.evaluate("document.body.scrollHeight > innerHeight + 40")
    tab.page.keyboard.press(key)
    # A scroll shows in the next frame at the earliest, the second says it is over.
    tab.page.evaluate(
        "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
    )
    assert tab.page.evaluate("scrollY") == 0


@pytest.mark.parametrize("width", [360, 1280])
def test_the_button_that_sends_keeps_its_place(open_tab, database, width):
    tab = open_tab(viewport={"width": width, "height": 800}).be_owner()
    slots = set()
    for events, step in (((), 0), (ASKED, 2), (ASKED, 3), (WHOLE, 4), (WHOLE, 5)):
        run = database.store(events)
        tab.visit(f"/runs/{run.id}/walk/{step}/")
        slots.add(slot(tab))
    assert len(slots) == 1


def test_play_stays_as_long_as_what_is_shown_takes_to_read(tab, database):
    run = database.store(WHOLE)
    clock = tab.page.clock
    clock.install(time=0)
    tab.be_owner().visit(f"/runs/{run.id}/walk/1/").live()
    clock.pause_at(3600_000)
    tab.page.keyboard.press("p")
    tab.until(step=2, event=3)
    words = len(tab.text("#story").split())
    events = tab.page.locator("#events .event").count()
    for event in range(4, 3 + events):
        clock.run_for(max(4000, words / 3.2 * 1000) / events + 100)
        tab.until(event=event)
    assert tab.cursor("step") == "2"
