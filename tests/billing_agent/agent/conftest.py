"""Fixtures of the agent's tests: seeded rows and announced facts."""

from __future__ import annotations

import pytest

from billing_agent import facts
from billing_agent.agent.database import close_connections
from billing_agent.seed import seed


@pytest.fixture
def committed(transactional_db):
    """A database that other threads see; their connections end with the test."""
    yield
    close_connections()


@pytest.fixture
def seeded(committed):
    """The demo's invoices."""
    seed()


@pytest.fixture
def announced():
    """What is announced during the test, in order."""
    heard = []

    async def listen(sender, fact, source, **kwargs):
        heard.append(fact)

    origin = facts.origin.set(facts.Origin("replica-a", "orchestrator"))
    facts.announced.connect(listen)
    yield heard
    facts.announced.disconnect(listen)
    facts.origin.reset(origin)
