"""The demo's own runs, read and recorded from a test."""

from __future__ import annotations

import asyncio
import threading

from orchestrator import runs
from orchestrator.config import Configuration
from orchestrator.deployment import Deployment, using
from tests.orchestrator import stored


class Database:
    """Works on the runs of a running demo."""

    def __init__(self, demo):
        self._deployment = Deployment(
            demo.environment["DATABASE_URL"], "", "", "", "", {}
        )

    def store(self, events=(), configuration=None, visitor=stored.OWNER):
        """Put a recorded run in the database; return it."""
        chosen = configuration or Configuration()
        return self._run(lambda: stored.store(events, chosen, visitor))

    def record(self, run, events):
        """Append events to a run, as its processes would."""
        self._run(lambda: stored.record(run, events))

    def renew(self, run_id):
        """Let the sender of a run's turn live on for a while."""
        self._run(lambda: runs.renew_claim(run_id))

    def read(self, run_id):
        """Return the events of a run."""
        return self._run(lambda: runs.read(run_id))

    def _run(self, work):
        """Run a coroutine in a thread of its own: Playwright's loop has this one."""
        found = []

        async def visit():
            with using(self._deployment):
                try:
                    found.append(await work())
                finally:
                    await runs.close()

        thread = threading.Thread(target=lambda: asyncio.run(visit()))
        thread.start()
        thread.join()
        return found[0]
