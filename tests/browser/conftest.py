"""Chromium, and tabs whose every request and complaint is watched."""

from __future__ import annotations

import shutil
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.database import Database
from tests.browser.tab import Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but this machine can be reached, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
pytestmark = pytest.mark.browser


# One for each module: while it lives, its event loop runs in this thread, and
# asynchronous tests of other modules cannot start theirs.
@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (make test installs it)")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=ARGUMENTS
        )
        yield launched
        launched.close()


@pytest.fixture
def open_tab(chromium, demo):
    """Opens tabs; each is a browser of its own unless given one.

    No tab may have asked another host for anything, or complained on its console,
    unless the test expects it.
    """
    tabs: list[Tab] = []

    def open_one(within=None, **options):
        context = within.page.context if within else chromium.new_context(**options)
        tabs.append(Tab(context, demo.web_url))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.page.context.close()
    own = urlsplit(demo.web_url).netloc
    assert {urlsplit(url).netloc for tab in tabs for url in tab.requested} <= {own}
    assert [text for tab in tabs for text in tab.complaints] == []


@pytest.fixture
def tab(open_tab):
    return open_tab(viewport={"width": 1280, "height": 800})


@pytest.fixture(scope="module")
def database(demo):
    return Database(demo)
