"""How the pages of a site are found and weighed."""

from __future__ import annotations

import httpx
import pytest

from benchmarks.pages import crawl

PAGES = {
    "/": '<link href="/app.css"><a href="/runs/r-ab12/walk/1/?event=3#top">run</a>',
    "/runs/r-ab12/walk/1/": '<script src="/app.js"></script><a href="/">home</a>'
    '<a href="/runs/r-cd34/walk/1/?event=3">another run</a><a href="/admin/">a</a>',
    "/elsewhere/": '<img src="https://example.org/x.png"><a href="mailto:a@b.c">m</a>',
}


@pytest.fixture
def site():
    asked = []

    def answer(request):
        asked.append(request.url.raw_path.decode())
        html = PAGES.get(request.url.path)
        if html is not None:
            return httpx.Response(200, html=html)
        return httpx.Response(200, stream=httpx.ByteStream(b"x" * 1000))

    transport = httpx.MockTransport(answer)
    with httpx.Client(transport=transport, base_url="http://site") as client:
        client.asked = asked
        yield client


def test_links_are_followed_and_a_page_of_another_run_is_the_same_page(site):
    visits = list(crawl(site, ["/"]))
    assert [visit.path for visit in visits] == ["/", "/runs/r-ab12/walk/1/?event=3"]


def test_what_a_page_loads_counts_once_in_each_page(site):
    first, second = crawl(site, ["/"])
    assert site.asked.count("/app.css") == 1
    assert first.kilobytes > 1
    assert second.kilobytes > 1


def test_other_hosts_are_named(site):
    (visit,) = crawl(site, ["/elsewhere/"])
    assert visit.foreign == {"example.org"}
