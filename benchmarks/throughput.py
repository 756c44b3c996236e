"""SendMessage on one replica beside the peer, in the shared store and in memory.

Both sides get the same bytes from the same generator, in turns; both run the same
agent on the same PostgreSQL. Ours has filter, audit and dedup on, and keeps tasks in
PostgreSQL in either case; the peer keeps them where it keeps its sessions.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from benchmarks import ground, table
from benchmarks.ground import NotMeasured
from benchmarks.load import Outcome
from benchmarks.rows import Bar, Row
from benchmarks.sending import drive
from web.demo.running import RunningDemo

AT_ONCE = (1, 16)
PEER_PATH = "/"


@dataclass(frozen=True, slots=True)
class Pair:
    """Which stores are compared, and how many times the peer's rate is the bar."""

    sessions: str
    what: str
    bar: Bar


PAIRS = (
    Pair("shared", "shared store against ADK's and a2a-sdk's", Bar(3, "x", True)),
    Pair("memory", "memory sessions against the peer in memory", Bar(0.8, "x", True)),
)
# Of one message: the caller's words, the call, its result, the answer.
EVENTS = 4
_OURS = "SELECT DISTINCT revision FROM billing_agent_adksession"
_THEIRS = "SELECT DISTINCT count(*) FROM events GROUP BY session_id"


def measure(quick: bool) -> list[Row]:
    """Measure both pairs at each concurrency."""
    with ground.foundation() as base:
        return [row for pair in PAIRS for row in _rows(base, pair, quick)]


def _rows(base: RunningDemo, pair: Pair, quick: bool) -> Iterator[Row]:
    durable = pair.sessions == "shared"
    with (
        ground.replica(base, SESSIONS=pair.sessions) as ours,
        ground.peer(base, durable=durable) as theirs,
    ):
        for at_once in AT_ONCE:
            yield _row(base, pair, at_once, (ours, theirs), quick)
    if durable:
        _check_work(base)


def _row(
    base: RunningDemo, pair: Pair, at_once: int, urls: tuple[str, str], quick: bool
) -> Row:
    rounds, seconds = (1, 5.0) if quick else (3, 10.0)
    ours: list[Outcome] = []
    theirs: list[Outcome] = []
    for _ in range(rounds):
        token = ground.token(base, "benchmark")
        ours.append(drive(urls[0], at_once=at_once, seconds=seconds, token=token))
        theirs.append(drive(urls[1], at_once=at_once, seconds=seconds, path=PEER_PATH))
    return Row(
        f"throughput-{pair.sessions}-{at_once}",
        f"SendMessage, {pair.what}, {at_once} at once",
        pair.bar,
        _rate(ours) / _rate(theirs),
        f"{_rate(ours):.0f}/s against {_rate(theirs):.0f}/s; "
        f"median {_latency(ours):.1f} ms against {_latency(theirs):.1f} ms",
    )


def _rate(outcomes: list[Outcome]) -> float:
    return statistics.median(outcome.rate for outcome in outcomes)


def _latency(outcomes: list[Outcome]) -> float:
    return statistics.median(
        milliseconds for outcome in outcomes for milliseconds in outcome.latencies
    )


def _check_work(base: RunningDemo) -> None:
    """Make sure that both sides ran the same turns.

    Raises:
        NotMeasured: one of them stored more or fewer events for a message.
    """
    with psycopg.connect(base.environment["DATABASE_URL"]) as connection:
        for query in (_OURS, _THEIRS):
            found = connection.execute(query).fetchall()
            if found != [(EVENTS,)]:
                raise NotMeasured(f"not {EVENTS} events for each message: {found}")


if __name__ == "__main__":
    sys.exit(table.run([measure]))
