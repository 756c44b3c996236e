"""The embedded router beside HAProxy, both in front of the same replica.

HAProxy runs with the configuration of compose.yaml. It verifies nobody and reads no
body; the router does both.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from benchmarks import ground, table
from benchmarks.ground import NotMeasured, free_port
from benchmarks.load import Outcome
from benchmarks.rows import Bar, Row
from benchmarks.sending import drive
from web.demo.running import RunningDemo
from web.environment import BASE_DIR

THROUGHPUT = Bar(0.7, "x", at_least=True)
ADDED = Bar(3, "ms")


def measure(quick: bool) -> list[Row]:
    """Measure the router beside HAProxy, 16 requests at once and one at a time."""
    with (
        ground.foundation() as base,
        ground.replica(base) as replica,
        ground.router(base, replica) as ours,
        haproxy(base, replica) as theirs,
    ):
        many = _compared(base, (ours, theirs), 16, quick)
        single = _compared(base, (ours, theirs), 1, quick)
    rates = [statistics.median(outcome.rate for outcome in side) for side in many]
    added = _median(single[0]) - _median(single[1])
    return [
        Row(
            "router-throughput",
            "router against HAProxy, 16 at once",
            THROUGHPUT,
            rates[0] / rates[1],
            f"{rates[0]:.0f}/s against {rates[1]:.0f}/s",
        ),
        Row(
            "router-latency",
            "median the router adds, against HAProxy, 1 at once",
            ADDED,
            added,
            f"{_median(single[0]):.1f} ms against {_median(single[1]):.1f} ms",
        ),
    ]


def _compared(
    base: RunningDemo, urls: tuple[str, str], at_once: int, quick: bool
) -> tuple[list[Outcome], list[Outcome]]:
    rounds, seconds = (2, 3.0) if quick else (6, 5.0)
    found: tuple[list[Outcome], list[Outcome]] = ([], [])
    for _ in range(rounds):
        token = ground.token(base, "benchmark")
        for url, outcomes in zip(urls, found, strict=True):
            outcomes.append(drive(url, at_once=at_once, seconds=seconds, token=token))
    return found


def _median(outcomes: list[Outcome]) -> float:
    return statistics.median(
        milliseconds for outcome in outcomes for milliseconds in outcome.latencies
    )


@contextmanager
def haproxy(base: RunningDemo, replica: str) -> Iterator[str]:
    """Run HAProxy in front of one replica; yield its address.

    Raises:
        NotMeasured: it is not installed, or does not start.
    """
    binary = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if binary is None:
        raise NotMeasured("HAProxy is not installed")
    port = free_port()
    config = base.var_dir / "haproxy.cfg"
    config.write_text(_configuration(port, urlsplit(replica).netloc))
    process = subprocess.Popen(
        [binary, "-db", "-f", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        ground.wait_for_card(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _configuration(port: int, replica: str) -> str:
    """Return the configuration of compose.yaml, both its replicas being this one."""
    text = (BASE_DIR / "deploy" / "haproxy.cfg").read_text()
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    return re.sub(r"replica-[ab]:800[12]", replica, text)


if __name__ == "__main__":
    sys.exit(table.run([measure]))
