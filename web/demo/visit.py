"""A demo to run a command against: the one that runs, or one started for it."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from django.conf import settings

from billing_agent.serving import PortTaken
from orchestrator import client, deployment, runs
from orchestrator.deployment import Deployment
from orchestrator.errors import OrchestratorError
from web import environment
from web.demo.keeper import DemoError, answers_at
from web.demo.layout import Layout
from web.demo.running import find_running
from web.demo.supervisor import START_SECONDS, Demo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from web.demo.running import RunningDemo

T = TypeVar("T")
# What a shell reports of a command that Ctrl-C ended (128 + SIGINT).
INTERRUPTED = 130


def visit(work: Coroutine[Any, Any, T], say: Callable[[str], None]) -> T:
    """Run ``work`` against a deployment; exit 2 with one line when it cannot run.

    Ctrl-C is one line, too, and exit ``INTERRUPTED``.

    Args:
        work: uses the orchestrator's client and runs, which are closed after it.
        say: is given that line, and those of a demo started for the visit.
    """

    async def closed_afterwards() -> T:
        try:
            return await work
        finally:
            await client.close()
            await runs.close()

    try:
        with visited(say):
            return asyncio.run(closed_afterwards())
    except (DemoError, PortTaken, OrchestratorError, psycopg.Error) as error:
        work.close()
        say(f"could not run: {_reason(error)}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(INTERRUPTED)


def _reason(error: Exception) -> str:
    """Return one line for the person who started the command."""
    if isinstance(error, psycopg.OperationalError):
        return "the database cannot be reached (DATABASE_URL)"
    if isinstance(error, psycopg.Error):
        first = str(error).partition("\n")[0]
        return f"the database is not ready, see `manage.py prepare`: {first}"
    return str(error)


@contextmanager
def visited(say: Callable[[str], None]) -> Iterator[None]:
    """Direct the orchestrator at a deployment: the running demo's, else the settings'
    (as in compose.yaml), else that of a demo started for as long as the block runs.

    Args:
        say: is given the lines that a demo started here has to tell.

    Raises:
        DemoError, PortTaken: there is none and none can be started.
    """
    running = find_running()
    if running is not None:
        with deployment.using(_of(_ready(running))):
            yield
    elif settings.DATABASE_URL and answers_at(settings.PUBLIC_URL):
        yield
    else:
        with (
            Demo(port_base=_free_base(), say=say) as started,
            deployment.using(_of(started)),
        ):
            yield


def _of(demo: RunningDemo) -> Deployment:
    return Deployment(
        database=demo.environment["DATABASE_URL"],
        public_url=demo.router_url,
        issuer=environment.text("OIDC_ISSUER") or demo.web_url,
        client_id=settings.OIDC_CLIENT_ID,
        client_secret=settings.OIDC_CLIENT_SECRET,
        replicas=demo.replicas,
    )


def _ready(demo: RunningDemo) -> RunningDemo:
    deadline = time.monotonic() + START_SECONDS
    found: RunningDemo | None = demo
    while found is not None and not found.ready:
        if time.monotonic() > deadline:
            raise DemoError(f"the demo at {found.web_url} does not get ready")
        time.sleep(0.1)
        found = find_running()
    if found is None:
        raise DemoError("the demo ended before it was ready")
    return found


def _free_base() -> int:
    """Return a port base whose ports are all free: the usual one if possible."""
    bases = [Layout().port_base, *random.sample(range(10_000, 60_000, 100), 50)]
    for base in bases:
        if Layout(base).free():
            return base
    raise DemoError("no free ports found")
