"""The story to its verdict: by mouse, by keyboard, and without JavaScript."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from orchestrator.config import Configuration
from orchestrator.predict import Outcome, predict
from tests.browser.tab import FLIPS, answers_in
from tests.child import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.processes]
FLIPPED = [None, *FLIPS]


def configured(flip):
    return Configuration().flipped(flip) if flip else Configuration()


def holds(tab, flip):
    """Hold the page against the rule, and against the run for machines."""
    rule = predict(configured(flip))
    remembers = rule.outcome is Outcome.ANSWERS
    assert tab.verdict() == ("remembered" if remembers else "forgot")
    found = tab.answers()
    assert found["outcome"] == rule.outcome
    assert found["path"] == [*rule.path]
    assert found["seen"] == rule.events_seen[1]
    report = tab.page.request.get(f"{tab.url}/runs/{tab.run_id}.json").json()
    assert report["config"] == configured(flip).as_dict()
    assert found == answers_in(report)


@pytest.mark.parametrize("flip", FLIPPED)
def test_by_mouse(tab, flip):
    page = tab.visit("/").page
    page.click("#walk")
    if flip:
        page.click(FLIPS[flip][0])
        page.wait_for_selector("#twin")
    tab.live()
    page.click("#onward")
    tab.until(step=1, status="asked")
    for step in (2, 3, 4):
        page.click("#onward")
        tab.until(step=step)
    tab.until(status="ended" if tab.verdict() == "remembered" else "asked")
    holds(tab, flip)
    page.click("#onward")
    tab.until(step=5)
    holds(tab, flip)


@pytest.mark.parametrize("flip", FLIPPED)
def test_by_keyboard(tab, flip):
    page, keys = tab.visit("/").page, tab.page.keyboard
    while page.evaluate("document.activeElement.id") != "walk":
        keys.press("Tab")
    keys.press("Enter")
    tab.until(step=0)
    tab.live()
    if flip:
        keys.press(FLIPS[flip][1])
        page.wait_for_selector("#twin")
        tab.live()
    while page.get_attribute("#verdict", "data-strip") == "open":
        page.wait_for_selector("a#next, button#next")
        shown = {name: tab.cursor(name) for name in ("have", "at", "step")}
        keys.press("ArrowRight")
        tab.until_not(**shown)
    holds(tab, flip)
    keys.press("5")
    tab.until(step=5)
    keys.press("Home")
    tab.until(step=1, at=1)
    keys.press("End")
    tab.until(step=4)


@pytest.mark.parametrize("flip", FLIPPED)
def test_without_javascript(open_tab, flip):
    tab = open_tab(java_script_enabled=False)
    page = tab.visit("/").page
    page.click("#walk")
    if flip:
        page.click(FLIPS[flip][0])
        page.wait_for_selector("#twin")
    page.click("#onward")
    tab.until(step=1, status="asked")
    for step in (2, 3, 4):
        page.click("#onward")
        tab.until(step=step)
    tab.verdict()
    holds(tab, flip)
    assert not page.is_visible("#play")
    assert not page.is_visible("#link-state")


def test_play_goes_to_the_verdict_by_itself(tab):
    page = tab.page
    page.clock.install()
    tab.visit("/").page.click("#walk")
    tab.live()
    page.keyboard.press("p")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    while page.get_attribute("#verdict", "data-strip") == "open":
        page.clock.run_for(1000)
    page.keyboard.press("p")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    holds(tab, None)


def test_the_start_page_sends_the_question(tab):
    page = tab.visit("/").page
    page.click("#start")
    tab.until(step=1, status="asked")
    assert tab.text("#conversation .bubble .text").startswith("Why was invoice 8812")


def test_the_page_answers_as_walkthrough_does_for_all_sixteen(tab, demo):
    printed = subprocess.run(
        [sys.executable, "manage.py", "matrix", "--json"],
        cwd=ROOT,
        env={**os.environ, "VAR_DIR": str(demo.var_dir)},
        capture_output=True,
        check=True,
        text=True,
    )
    cells = json.loads(printed.stdout)["cells"]
    assert len(cells) == 16
    for cell in cells:
        tab.visit(f"/runs/{cell['run']}/walk/4/")
        assert tab.answers() == answers_in(cell)


def test_every_event_is_on_the_page_without_javascript(open_tab, tab):
    tab.visit("/").page.click("#start")
    tab.until(status="asked")
    plain = open_tab(java_script_enabled=False)
    listed = []
    for step in range(1, 4):
        plain.visit(f"/runs/{tab.run_id}/walk/{step}/")
        listed += plain.page.locator("#events .what").all_inner_texts()
    tab.visit(f"/runs/{tab.run_id}/walk/1/")
    seen = []
    for step in range(1, 4):
        tab.page.click(f"#step-{step}")
        tab.until(step=step)
        seen += tab.page.locator("#events .what").all_inner_texts()
    assert listed == seen
    assert len(seen) == int(tab.cursor("seq"))
