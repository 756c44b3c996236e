"""The story's two turns, and the matrix of sixteen, over every part of the demo."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from benchmarks import ground, table
from benchmarks.ground import NotMeasured
from benchmarks.rows import Bar, Row, spread
from orchestrator import client, runs
from orchestrator.config import Configuration
from orchestrator.matrix import as_json, play_matrix
from orchestrator.story import play

BOTH_TURNS = Bar(400, "ms")
MATRIX = Bar(5, "s")
CELLS = 16


def measure(quick: bool) -> list[Row]:
    """Play the story and the matrix on a warm demo without model latency."""
    with ground.demo():
        stories, matrices = asyncio.run(_measure(*((5, 1) if quick else (25, 5))))
    return [
        Row(
            "story",
            "story, both turns, recorded; median",
            BOTH_TURNS,
            statistics.median(stories),
            spread(stories),
        ),
        Row(
            "matrix",
            "matrix of 16, all as predicted; median",
            MATRIX,
            statistics.median(matrices),
            spread(matrices, "s"),
        ),
    ]


async def _measure(stories: int, matrices: int) -> tuple[list[float], list[float]]:
    try:
        for _ in range(3):
            await _story()
        return (
            [await _story() for _ in range(stories)],
            [await _matrix() for _ in range(matrices)],
        )
    finally:
        await client.close()
        await runs.close()


async def _story() -> float:
    """Play the story in a new run; return its milliseconds, recording included."""
    begun = time.perf_counter()
    await play(Configuration())
    return (time.perf_counter() - begun) * 1000


async def _matrix() -> float:
    begun = time.perf_counter()
    cells = await play_matrix()
    taken = time.perf_counter() - begun
    if (found := as_json(cells)["as_predicted"]) != CELLS:
        raise NotMeasured(f"{found} of {CELLS} cells as predicted")
    return taken


if __name__ == "__main__":
    sys.exit(table.run([measure]))
