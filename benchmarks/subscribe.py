"""Subscribing on the replica that does not run the task: how far it is behind.

One client streams a task from its owner, another subscribes to it on the other
replica; both are in this process, so an event's two arrivals have one clock.
"""

from __future__ import annotations

import asyncio
import secrets
import sys

from benchmarks import ground, table
from benchmarks.caller import Caller, Result, message
from benchmarks.ground import NotMeasured
from benchmarks.rows import Bar, Row, percentile, spread

BEHIND = Bar(50, "ms")
AUDIT = "audit the last 10 invoices"
MODEL_SECONDS = 0.03


def measure(quick: bool) -> list[Row]:
    """Subscribe to audits on the other replica."""
    with ground.demo(SCRIPTED_MODEL_LATENCY=str(MODEL_SECONDS)) as running:
        token = ground.token(running, "benchmark")
        urls = running.replicas["replica-b"], running.replicas["replica-a"]
        lags = asyncio.run(_measure(urls, token, 5 if quick else 40))
    first = [of_one[0] for of_one in lags]
    every = [lag for of_one in lags for lag in of_one]
    return [
        Row(
            "subscribe",
            "first event on the other replica behind the owner's, p99",
            BEHIND,
            percentile(first, 0.99),
            f"first: {spread(first)}; all: {spread(every)}",
        )
    ]


async def _measure(
    urls: tuple[str, str], token: str, samples: int
) -> list[list[float]]:
    async with Caller(urls[0], token) as owner, Caller(urls[1], token) as other:
        return [await _lags(owner, other) for _ in range(samples)]


async def _lags(owner: Caller, other: Caller) -> list[float]:
    """Return how many milliseconds later each artifact came on the other replica."""
    there: dict[str, float] = {}
    here: dict[str, float] = {}

    async def follow(task_id: str) -> None:
        async with other.stream("SubscribeToTask", {"id": task_id}) as events:
            async for at, event in events:
                _note(here, at, event)

    sent = message(AUDIT, secrets.token_hex(8))
    async with (
        asyncio.TaskGroup() as group,
        owner.stream("SendStreamingMessage", sent, output="per-event") as events,
    ):
        async for at, event in events:
            if "task" in event:
                group.create_task(follow(event["task"]["id"]))
            _note(there, at, event)
    if not here:
        raise NotMeasured("the audit ended before the subscription began")
    # What was there before the subscription came with its first snapshot.
    return [(at - there[artifact]) * 1000 for artifact, at in here.items()]


def _note(arrived: dict[str, float], at: float, event: Result) -> None:
    if "artifactUpdate" in event:
        arrived[event["artifactUpdate"]["artifact"]["artifactId"]] = at


if __name__ == "__main__":
    sys.exit(table.run([measure]))
