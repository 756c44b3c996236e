"""Fixtures for everything about the router."""

from __future__ import annotations

import pytest

from tests.billing_agent.router.replicas import Stage


@pytest.fixture
def stage():
    return Stage()
