"""A child process whose output a test waits for, line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Child:
    """Runs ``python COMMAND...`` in the project's folder; a context manager.

    What it prints is kept, and shown by every failed expectation.
    """

    def __init__(self, *command: str, unset: tuple[str, ...] = (), **environment: str):
        inherited = {k: v for k, v in os.environ.items() if k not in unset}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**inherited, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return "\n".join(self._lines)

    def expect(self, text: str, within: float = 30) -> str:
        """Wait for a line with this text and return it."""
        deadline = time.monotonic() + within
        with self._news:
            while True:
                for line in self._lines:
                    if text in line:
                        return line
                left = deadline - time.monotonic()
                ended = not self._reader.is_alive()
                assert left > 0 and not ended, f"no {text!r} in:\n{self.output}"
                self._news.wait(min(left, 0.1))

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 30) -> int:
        """Wait for the end and return the exit code."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.output}") from None
        self._reader.join(within)
        return code

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._news:
                self._lines.append(line.rstrip("\n"))
                self._news.notify_all()
