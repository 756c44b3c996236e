"""From ``manage.py demo`` to its ``ready`` line, the first time and again."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks import table
from benchmarks.ground import NotMeasured, free_base
from benchmarks.rows import Bar, Row
from web.environment import BASE_DIR

FIRST = Bar(6, "s")
AGAIN = Bar(4, "s")


def measure(quick: bool) -> list[Row]:
    """Start the demo on an empty folder, then on the same folder again."""
    first: list[float] = []
    again: list[float] = []
    for _ in range(1 if quick else 5):
        folder = tempfile.mkdtemp(prefix="i8812-bench-")
        try:
            first.append(seconds_to_ready(folder))
            again.append(seconds_to_ready(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return [
        Row("first-start", "demo to ready, first time; median", FIRST, *_found(first)),
        Row("next-start", "demo to ready, again; median", AGAIN, *_found(again)),
    ]


def seconds_to_ready(folder: str) -> float:
    """Start the demo on a folder, stop it, and return how long it took to be ready.

    Raises:
        NotMeasured: it ended before.
    """
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    command = ["manage.py", "demo", "--no-open", "--port-base", str(free_base())]
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=BASE_DIR,
        env={**inherited, "VAR_DIR": folder},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        ready = any(line.startswith("ready ") for line in process.stdout)
        taken = time.perf_counter() - begun
        process.send_signal(signal.SIGINT)
        process.communicate()
    if not ready:
        raise NotMeasured("the demo did not get ready")
    return taken


def _found(seconds: list[float]) -> tuple[float, str]:
    detail = f"{min(seconds):.2f} to {max(seconds):.2f} s, {len(seconds)} starts"
    return statistics.median(seconds), detail


if __name__ == "__main__":
    sys.exit(table.run([measure]))
