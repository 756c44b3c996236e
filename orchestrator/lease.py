"""The claim of a turn, renewed while its sender lives, void soon after it died."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg

from orchestrator import runs
from orchestrator.models import Run, TurnState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 2.5


def is_abandoned(run: Run) -> bool:
    """Tell whether the run's turn is on its way and nobody is sending it any more."""
    silent = datetime.now(UTC) - run.renewed_at
    return run.turn_state == TurnState.SENDING and silent >= runs.ABANDONED_AFTER


@asynccontextmanager
async def kept(run_id: str) -> AsyncIterator[None]:
    """Renew the claim of a run's turn for as long as the block runs."""
    renewing = asyncio.create_task(_renew(run_id), name=f"{run_id} lease")
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def _renew(run_id: str) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        try:
            await runs.renew_claim(run_id)
        except (psycopg.Error, TimeoutError) as error:
            # The database may be back in time for the next one.
            logger.warning("Claim of %s not renewed: %r", run_id, error)
