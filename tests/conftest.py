"""Fixtures shared by all tests: the demo in real processes."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from tests.peer import Peer, token
from tests.ports import free_port_base

LOG_LINES = 40


@pytest.fixture(autouse=True)
def no_connection_left():
    """Close what a test opened on the thread of its asynchronous queries.

    A later test without a database would meet it there, and so would the end.
    """
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture(scope="session")
def demo():
    """The running demo: own ports, own PostgreSQL, own folder.

    A part that dies is shown with the end of its output; so is every part when a
    test that uses this fixture fails.
    """
    with running_demo() as running:
        yield running


@pytest.fixture(scope="session")
def slow_demo():
    """A demo whose model takes its time, with waits short enough to be met."""
    settings = {
        "SCRIPTED_MODEL_LATENCY": "0.15",
        "RUN_TIMEOUT": "20",
        "BLOCKING_WAIT": "1",
        "CONSUMPTION_WAIT": "1",
    }
    with running_demo(**settings) as running:
        yield running


@contextmanager
def running_demo(change=None, **settings):
    """Start a demo with more settings; stop it and remove its folder at the end.

    ``change`` is given each of the demo's parts and returns the one to run.
    """
    from web.demo.layout import Layout
    from web.demo.supervisor import Demo

    port_base = free_port_base()
    changed = [change(part) for part in Layout(port_base).parts()] if change else None

    folder = Path(tempfile.mkdtemp(prefix="i8812-demo-"))
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    parts = Demo(
        port_base=port_base,
        parts=changed,
        var_dir=folder,
        environment={**inherited, **settings},
        say=lambda line: print(line, *_output_of(line, folder), sep="\n"),
    )
    with parts as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture
async def make_peer(demo):
    """Return a factory of peers of the demo, see ``peers_of``."""
    async with peers_of(demo) as make:
        yield make


@pytest.fixture
async def make_slow_peer(slow_demo):
    """Return a factory of peers of the slow demo, see ``peers_of``."""
    async with peers_of(slow_demo) as make:
        yield make


@asynccontextmanager
async def peers_of(demo):
    """Yield a factory: ``await make(where, subject=..., tenant=...)``.

    ``where`` is ``router``, ``replica-a`` or ``replica-b``; a call without a subject
    speaks as a fresh one.
    """
    peers = []

    async def make(where="router", subject=None, tenant="acme"):
        bearer = await token(demo, subject or f"peer-{secrets.token_hex(4)}", tenant)
        url = demo.router_url if where == "router" else demo.replicas[where]
        peers.append(Peer(url, bearer))
        return peers[-1]

    try:
        yield make
    finally:
        for peer in peers:
            await peer.http.aclose()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    given = getattr(item, "funcargs", {})
    running = given.get("slow_demo") or given.get("demo")
    if report.failed and running is not None:
        for log in sorted((running.var_dir / "log").glob("*.log")):
            report.sections.append((f"output of {log.stem}", _end_of(log)))


def _output_of(line: str, folder: Path) -> list[str]:
    name, _, news = line.partition(" ")
    return [_end_of(folder / "log" / f"{name}.log")] if news.startswith("died") else []


def _end_of(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    return "\n".join(text.splitlines()[-LOG_LINES:])
