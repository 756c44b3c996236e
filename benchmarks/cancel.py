"""Cancel through the replica that does not run the task.

A quiet run (nothing leaves before its end) audits invoice after invoice on one
replica, and is cancelled through the other at a random moment. The demo's recorder
tells when each model call began, in the database's time, which on one machine is the
clock of this process as well.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from benchmarks import ground, table
from benchmarks.caller import Caller, Refused, state
from benchmarks.ground import NotMeasured
from benchmarks.rows import Bar, Row, percentile, spread
from orchestrator import client, runs
from orchestrator.config import Configuration
from orchestrator.events import Event, Kind
from web.demo.running import RunningDemo

LAST_CALL = Bar(100, "ms")
NONE_AFTER = Bar(0, "")
AUDIT = "audit the last 15 invoices"
MODEL_SECONDS = 0.02
CANCELED = "TASK_STATE_CANCELED"
# Many model calls would fit in.
QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A task and when its cancel was sent, in seconds since the epoch."""

    task_id: str
    sent_at: float


def measure(quick: bool) -> list[Row]:
    """Cancel audits that run on the other replica."""
    with ground.demo(SCRIPTED_MODEL_LATENCY=str(MODEL_SECONDS)) as running:
        return asyncio.run(_measure(running, 15 if quick else 150))


async def _measure(running: RunningDemo, samples: int) -> list[Row]:
    run = await runs.create(Configuration())
    token = ground.token(running, run.subject)
    try:
        async with (
            Caller(running.replicas["replica-b"], token) as owner,
            Caller(running.replicas["replica-a"], token) as other,
        ):
            done = [await _cancel_one(owner, other) for _ in range(samples)]
            await asyncio.sleep(QUIET_SECONDS)
            await _check_states(done, (owner, other))
        return _rows(done, await runs.read(run.id))
    finally:
        await client.close()
        await runs.close()


async def _cancel_one(owner: Caller, other: Caller) -> Cancelled:
    while True:
        task = await owner.send(AUDIT, secrets.token_hex(8), now=True)
        await asyncio.sleep(random.uniform(0.05, 0.25))
        sent_at = time.time()
        # Refused: the audit was faster.
        with suppress(Refused):
            await other.cancel(task["id"])
            return Cancelled(task["id"], sent_at)


async def _check_states(done: Sequence[Cancelled], callers: Sequence[Caller]) -> None:
    for cancelled in done:
        for caller in callers:
            if (found := state(await caller.get(cancelled.task_id))) != CANCELED:
                raise NotMeasured(f"a cancelled task is {found}")


def _rows(done: Sequence[Cancelled], events: Sequence[Event]) -> list[Row]:
    last = [_last_call(events, one) for one in done]
    return [
        Row(
            "cancel",
            "cancel on the other replica to the last model call, p99",
            LAST_CALL,
            percentile(last, 0.99),
            f"{spread(last)}; every task stays CANCELED on both replicas",
        ),
        Row(
            "cancel-after",
            f"model calls begun later than {LAST_CALL.limit:g} ms after the cancel",
            NONE_AFTER,
            sum(_calls_after(events, one) for one in done),
            f"of {len(done)} runs cancelled in the middle",
        ),
    ]


def _calls(events: Sequence[Event], one: Cancelled) -> list[float]:
    """Return when a task's model calls began: milliseconds after its cancel."""
    return [
        (event.at.timestamp() - one.sent_at) * 1000
        for event in events
        if event.kind is Kind.MODEL_CALLED and event.data["task_id"] == one.task_id
    ]


def _last_call(events: Sequence[Event], one: Cancelled) -> float:
    return max([0.0, *_calls(events, one)])


def _calls_after(events: Sequence[Event], one: Cancelled) -> int:
    return sum(at > LAST_CALL.limit for at in _calls(events, one))


if __name__ == "__main__":
    sys.exit(table.run([measure]))
