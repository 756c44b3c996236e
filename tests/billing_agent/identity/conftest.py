"""Fixtures for everything about identity."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.billing_agent.identity.issuers import TestIssuer, verifier_of

# No test of ours fails because a machine is slow.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def issuer() -> TestIssuer:
    return TestIssuer()


@pytest.fixture
def verifier(issuer):
    return verifier_of(issuer)
