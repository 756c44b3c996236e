"""Demos for bad weather."""

from __future__ import annotations

import pytest

from tests.conftest import peers_of, running_demo


@pytest.fixture(scope="session")
def sleepy_demo():
    """A demo whose model takes eight seconds to answer anything."""
    with running_demo(SCRIPTED_MODEL_LATENCY="8") as running:
        yield running


@pytest.fixture
async def make_sleepy_peer(sleepy_demo):
    """Return a factory of peers of the sleepy demo, see ``peers_of``."""
    async with peers_of(sleepy_demo) as make:
        yield make
