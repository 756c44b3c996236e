"""Keeps one part of the demo running: starts it, asks after it, starts it again."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from web.environment import BASE_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

POLL_SECONDS = 0.03
# A part that lived shorter than this is started again after a growing delay.
SHORT_LIFE_SECONDS = 5.0
FIRST_DELAY_SECONDS = 0.25
LONGEST_DELAY_SECONDS = 10.0

# A group of their own keeps Ctrl-C from the parts: their supervisor ends them.
# On Windows that is this flag, elsewhere a session (which Windows ignores).
NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


class DemoError(Exception):
    """The demo cannot run; the message is one line for the person who started it."""


def _why(output: str) -> str:
    """Return the last line, or the first of the message that ends a traceback."""
    lines = output.strip().splitlines() or [""]
    frames = [n for n, line in enumerate(lines) if line.startswith('  File "')]
    end = lines[frames[-1] :] if frames else []
    said = [line for line in end if not line.startswith(" ")]
    return (said or lines[-1:])[0]


class PartFailed(DemoError):
    """A part ended before it ever answered; ``output`` is the end of its log."""

    def __init__(self, name: str, code: int, output: str) -> None:
        super().__init__(f"{name} ended with {code} while starting: {_why(output)}")
        self.name = name
        self.code = code
        self.output = output


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the demo.

    Args:
        name: how it is called in what the demo prints.
        command: a Python script and its arguments, relative to the project.
        place: what to print about it: its address.
        answers: whether it is up; asked again and again.
    """

    name: str
    command: tuple[str, ...]
    place: str
    answers: Callable[[], bool]


def answers_at(url: str, timeout: float = 2) -> bool:
    """Return whether ``GET /healthz`` under ``url`` is answered with 200."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port, timeout=timeout
    )
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Keeper:
    """Starts one part and keeps it until told to end it.

    Args:
        part: what to run.
        environment: the environment of its process.
        log: file its output goes to, begun anew.
        say: is given one line when it died, and one when it is back.
        on_start: called after each start, when ``pid`` is the new one.
    """

    def __init__(
        self,
        part: Part,
        environment: Mapping[str, str],
        log: Path,
        say: Callable[[str], None],
        on_start: Callable[[], None],
    ) -> None:
        self.part = part
        self._environment = environment
        self._log = log
        self._say = say
        self._on_start = on_start
        self._process: subprocess.Popen[bytes] | None = None
        self._up: Future[None] = Future()
        self._ending = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        log.write_bytes(b"")

    @property
    def pid(self) -> int:
        """The process id of the part; 0 before its first start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the part, without waiting for it."""
        self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait until the part has answered once.

        Raises:
            PartFailed: it ended before.
            TimeoutError: ``timeout`` seconds passed.
        """
        self._up.result(timeout)

    def ask_to_end(self) -> None:
        """Let go of the part's leash: it ends by itself, and stays away."""
        self._ending.set()
        self._let_go()

    def end(self, timeout: float) -> None:
        """Wait until the part has ended; kill it after ``timeout`` seconds."""
        self.ask_to_end()
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._thread.is_alive():
            self._thread.join()

    def _keep(self) -> None:
        delay = FIRST_DELAY_SECONDS
        while (process := self._spawn()) is not None:
            born = time.monotonic()
            self._greet(process)
            code = process.wait()
            self._let_go()
            if self._ending.is_set():
                return
            if not self._up.done():
                failure = PartFailed(self.part.name, code, tail(self._log))
                self._up.set_exception(failure)
                return
            self._say(f"{self.part.name} died ({_how(code)}), starting it again")
            if time.monotonic() - born > SHORT_LIFE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            self._ending.wait(delay)
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)

    def _spawn(self) -> subprocess.Popen[bytes] | None:
        with self._guard:
            if self._ending.is_set():
                return None
            self._process = spawn(self.part.command, self._environment, self._log)
        self._on_start()
        return self._process

    def _let_go(self) -> None:
        with self._guard:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()

    def _greet(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the part answers, ends or has to end."""
        while process.poll() is None and not self._ending.wait(POLL_SECONDS):
            if not self.part.answers():
                continue
            if self._up.done():
                self._say(f"{self.part.name} is back, pid {process.pid}")
            else:
                self._up.set_result(None)
            return


def spawn(
    command: tuple[str, ...], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a script of the project on a leash, its output appended to ``log``."""
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own scripts
            [sys.executable, "-m", "web.demo.leash", *command],
            cwd=BASE_DIR,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            creationflags=NEW_GROUP,
            start_new_session=True,
        )


def tail(log: Path, lines: int = 30) -> str:
    """Return the last lines of a part's output."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def _how(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit {code}"
