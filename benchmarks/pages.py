"""The first rendering of every page: server time, transferred bytes, other hosts.

The pages are found by following links from the index and from a played run, as far as
the web process itself serves them. The first request of a page in a fresh process
counts, templates not yet compiled.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx

from benchmarks import ground, table
from benchmarks.rows import Bar, Row
from orchestrator import client, runs
from orchestrator.config import Configuration
from orchestrator.story import play

SERVER_TIME = Bar(150, "ms")
TRANSFERRED = Bar(150, "KB")
NO_OTHER_HOST = Bar(0, "")
_LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("use", "href")}
_RUN = re.compile(r"/r-\w+/")


@dataclass(frozen=True, slots=True)
class Visit:
    """What one page took."""

    path: str
    milliseconds: float
    kilobytes: float
    foreign: frozenset[str]


class _Addresses(HTMLParser):
    """Collects what a page links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (tag, name) in _LOADED:
                self.loaded.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.append(value)


def measure(quick: bool) -> list[Row]:
    """Open every page of the web process once."""
    with ground.demo() as running:
        run_id = asyncio.run(_played())
        with httpx.Client(
            base_url=running.web_url,
            headers={"Accept": "text/html", "Accept-Encoding": "gzip"},
            trust_env=False,
        ) as http:
            visits = list(crawl(http, ["/", f"/runs/{run_id}/walk/0/"]))
    slowest = max(visits, key=lambda visit: visit.milliseconds)
    largest = max(visits, key=lambda visit: visit.kilobytes)
    foreign = frozenset[str]().union(*(visit.foreign for visit in visits))
    return [
        Row(
            "page-time",
            f"first render, the slowest of {len(visits)} pages",
            SERVER_TIME,
            slowest.milliseconds,
            slowest.path,
        ),
        Row(
            "page-bytes",
            "transferred with an empty cache, the largest page",
            TRANSFERRED,
            largest.kilobytes,
            largest.path,
        ),
        Row(
            "page-hosts",
            "other hosts that a page loads from",
            NO_OTHER_HOST,
            len(foreign),
            ", ".join(sorted(foreign)),
        ),
    ]


async def _played() -> str:
    try:
        return (await play(Configuration())).id
    finally:
        await client.close()
        await runs.close()


def crawl(http: httpx.Client, start: list[str]) -> Iterator[Visit]:
    """Visit each page once; pages that differ in the run alone are one."""
    sizes: dict[str, int] = {}
    waiting = deque(start)
    known = {_kind(path) for path in start}
    while waiting:
        path = waiting.popleft()
        begun = time.perf_counter()
        answer = http.get(path)
        taken = (time.perf_counter() - begun) * 1000
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        found = _Addresses()
        found.feed(answer.text)
        local, foreign = _sorted(http, path, found.loaded)
        size = _transferred(answer) + sum(_size(http, url, sizes) for url in local)
        yield Visit(path, taken, size / 1000, foreign)
        for link in _sorted(http, path, found.links)[0]:
            if _kind(link) not in known and not link.startswith("/admin/"):
                known.add(_kind(link))
                waiting.append(link)


def _kind(path: str) -> str:
    return _RUN.sub("/r/", path)


def _sorted(
    http: httpx.Client, page: str, addresses: list[str]
) -> tuple[set[str], frozenset[str]]:
    """Return the paths on this host, and the names of the others."""
    here = urlsplit(str(http.base_url)).netloc
    parts = [urlsplit(urljoin(f"//{here}{page}", address)) for address in addresses]
    web = [part for part in parts if part.scheme in {"", "http", "https"}]
    local = {
        part.path + (f"?{part.query}" if part.query else "")
        for part in web
        if part.netloc == here
    }
    return local, frozenset(part.netloc for part in web if part.netloc != here)


def _size(http: httpx.Client, url: str, sizes: dict[str, int]) -> int:
    if url not in sizes:
        sizes[url] = _transferred(http.get(url))
    return sizes[url]


def _transferred(answer: httpx.Response) -> int:
    """Return the bytes of an answer on the wire, headers included."""
    headers = sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
    return answer.num_bytes_downloaded + headers


if __name__ == "__main__":
    sys.exit(table.run([measure]))
