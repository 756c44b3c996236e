"""What turn 200 of a conversation costs in the shared store, beyond memory.

The same conversation is held with two replicas, one that keeps its sessions in the
shared store and one that keeps them in memory: what turn 200 adds to turn 2 in the
one, less what it adds in the other. What a longer conversation costs ADK itself is in
both.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import sys
import time

from benchmarks import ground, table
from benchmarks.caller import Caller
from benchmarks.rows import Bar, Row

LATE = 200
ADDED = Bar(15, "ms")
# Two tool calls each: six events a turn.
QUESTIONS = (
    "Why did the compute line of invoice 8812 change?",
    "Why did the storage line of invoice 8767 change?",
)


def measure(quick: bool) -> list[Row]:
    """Measure turn 2 and turn 200, shared store and memory in turns."""
    with (
        ground.foundation() as base,
        ground.replica(base, SESSIONS="shared") as shared,
        ground.replica(base, SESSIONS="memory") as memory,
    ):
        token = ground.token(base, "benchmark")
        found = asyncio.run(_measure((shared, memory), token, 6 if quick else 20))
    added = [
        statistics.median(late) - statistics.median(early) for early, late in found
    ]
    return [
        Row(
            "turn-200",
            f"turn {LATE} against turn 2, shared store, beyond memory",
            ADDED,
            added[0] - added[1],
            f"adds {added[0]:.1f} ms shared, {added[1]:.1f} ms in memory",
        )
    ]


async def _measure(
    urls: tuple[str, str], token: str, samples: int
) -> list[tuple[list[float], list[float]]]:
    """Return, for each replica, the milliseconds of turns 2 and of turns about 200."""
    async with Caller(urls[0], token) as shared, Caller(urls[1], token) as memory:
        both = shared, memory
        early: tuple[list[float], list[float]] = ([], [])
        for _ in range(samples):
            for caller, taken in zip(both, early, strict=True):
                talk = Talk(caller)
                await talk.turn()
                taken.append(await talk.turn())
        talks = [Talk(caller) for caller in both]
        for talk in talks:
            for _ in range(LATE - samples // 2 - 1):
                await talk.turn()
        late: tuple[list[float], list[float]] = ([], [])
        for _ in range(samples):
            for talk, taken in zip(talks, late, strict=True):
                taken.append(await talk.turn())
    return list(zip(early, late, strict=True))


class Talk:
    """One conversation, turn after turn."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._context_id = secrets.token_hex(8)
        self._turns = 0

    async def turn(self) -> float:
        """Ask the next question; return the milliseconds until its answer."""
        text = QUESTIONS[self._turns % len(QUESTIONS)]
        self._turns += 1
        begun = time.perf_counter()
        await self._caller.send(text, self._context_id)
        return (time.perf_counter() - begun) * 1000


if __name__ == "__main__":
    sys.exit(table.run([measure]))
