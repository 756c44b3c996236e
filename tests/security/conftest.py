"""Fixtures of the security tests: the other team's client, aimed at the demo."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from orchestrator import client, deployment, runs
from orchestrator.deployment import Deployment


@contextmanager
def aimed_at(demo):
    """Let the orchestrator's code of this process work with a demo."""
    chosen = Deployment(
        database=demo.environment["DATABASE_URL"],
        public_url=demo.router_url,
        issuer=demo.web_url,
        client_id="orchestrator",
        client_secret=(demo.var_dir / "client-orchestrator").read_text(),
        replicas=demo.replicas,
    )
    with deployment.using(chosen):
        yield


@pytest.fixture
async def orchestrator(demo):
    """The orchestrator's story and runs work with the demo, in this process."""
    with aimed_at(demo):
        yield
        await client.close()
        await runs.close()
