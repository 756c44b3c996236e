"""Starts every part of the demo, keeps it running, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import psutil
from fasteners import InterProcessLock

from billing_agent.serving import check_port
from web.demo.embedded import read_url, url_file
from web.demo.keeper import DemoError, Keeper, Part, PartFailed, spawn, tail
from web.demo.layout import Layout
from web.demo.running import RunningDemo, find_running, remove_record, write_record
from web.demo.schema import is_prepared
from web.environment import var_dir as default_var_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

START_SECONDS = 60.0
# Seconds the parts get to end, all together, and then the database.
STOP_SECONDS = 3.5
DATABASE_STOP_SECONDS = 10.0


def print_line(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


class DemoRunning(DemoError):
    """Another demo, ``other``, uses the same data."""

    def __init__(self, other: RunningDemo | None, data: Path) -> None:
        address = other.web_url if other else "still starting or stopping"
        super().__init__(
            f"a demo already runs on {data}: {address} "
            "(VAR_DIR chooses another folder for a second one)"
        )
        self.other = other


class Demo:
    """The demo as a context manager, for commands and tests.

    Args:
        port_base: the web process's port; the others follow from it.
        replicas: one or two.
        var_dir: folder for keys, data and logs; default: the ``VAR_DIR`` setting.
        environment: what the parts' environment starts from; default: this one's.
            With a ``DATABASE_URL`` in it no PostgreSQL is started.
        parts: other parts than the demo's own.
        prepare: whether the parts need the schema and the invoices.
        say: is given each line the demo has to tell.

    Raises:
        DemoError: on entering; the message is one line.
        PortTaken: on entering; it names the port and the option.
    """

    def __init__(
        self,
        *,
        port_base: int = 8000,
        replicas: int = 2,
        var_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        parts: Sequence[Part] | None = None,
        prepare: bool = True,
        say: Callable[[str], None] = print_line,
    ) -> None:
        self._layout = Layout(port_base, replicas)
        self._var_dir = (var_dir or default_var_dir()).resolve()
        self._inherited = dict(os.environ if environment is None else environment)
        self._parts = self._layout.parts() if parts is None else parts
        self._prepare = prepare
        self._say = say
        self._settings: dict[str, str] = {}
        self._keepers: list[Keeper] = []
        self._ready = False
        self._recording = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> RunningDemo:
        with ExitStack() as stack:
            self._begin(stack)
            self._stack = stack.pop_all()
        self._record()
        return self._running()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(self, when_ready: Callable[[RunningDemo], None] | None = None) -> None:
        """Run until Ctrl-C or SIGTERM, then stop everything.

        Raises:
            DemoError: it cannot run.
            PortTaken: a port it needs is in use.
        """
        with _signals_interrupt(), suppress(KeyboardInterrupt), self as demo:
            if when_ready is not None:
                when_ready(demo)
            while True:
                time.sleep(1)

    def _begin(self, stack: ExitStack) -> None:
        self._take_folder(stack)
        for port in self._layout.ports:
            check_port(port, option="--port-base")
        self._settings = self._layout.settings(self._inherited.get("DATABASE_URL", ""))
        self._settings["VAR_DIR"] = str(self._var_dir)
        stack.callback(remove_record, self._var_dir)
        self._record()
        if not self._settings["DATABASE_URL"]:
            self._settings["DATABASE_URL"] = self._start_database(stack)
        if self._prepare and not is_prepared(self._settings["DATABASE_URL"]):
            self._run_prepare()
        self._start_parts(stack)
        self._ready = True

    def _take_folder(self, stack: ExitStack) -> None:
        try:
            self._var_dir.mkdir(parents=True, exist_ok=True)
            # Tracebacks may hold what only the log may tell.
            (self._var_dir / "log").mkdir(mode=0o700, exist_ok=True)
            lock = InterProcessLock(self._var_dir / "demo.lock")
            if not lock.acquire(blocking=False):
                raise DemoRunning(find_running(self._var_dir), self._var_dir)
        except OSError as error:
            raise DemoError(f"VAR_DIR cannot be used: {error}") from None
        stack.callback(lock.release)

    def _start_database(self, stack: ExitStack) -> str:
        data = self._var_dir / "postgres"
        url_file(data).unlink(missing_ok=True)
        part = Part(
            "postgres",
            ("web/demo/embedded.py", str(data)),
            f"embedded, {data}",
            lambda: read_url(data) is not None,
        )
        keeper = self._keep(part)
        stack.callback(keeper.end, DATABASE_STOP_SECONDS)
        self._await(keeper)
        return read_url(data) or ""

    def _run_prepare(self) -> None:
        log = self._var_dir / "log" / "prepare.log"
        log.write_bytes(b"")
        process = spawn(("manage.py", "prepare"), self._environment(), log)
        try:
            code = process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()
        if code:
            raise PartFailed("prepare", code, tail(log))

    def _start_parts(self, stack: ExitStack) -> None:
        stack.callback(self._stop_parts)
        keepers = [self._keep(part) for part in self._parts]
        for keeper in keepers:
            self._await(keeper)

    def _keep(self, part: Part) -> Keeper:
        log = self._var_dir / "log" / f"{part.name}.log"
        keeper = Keeper(part, self._environment(), log, self._say, self._record)
        self._keepers.append(keeper)
        keeper.start()
        return keeper

    def _await(self, keeper: Keeper) -> None:
        try:
            keeper.wait(START_SECONDS)
        except TimeoutError:
            name = keeper.part.name
            raise DemoError(f"{name}: no answer for {START_SECONDS:g} s") from None
        self._say(f"{keeper.part.name:<10} {keeper.part.place}  pid {keeper.pid}")

    def _stop_parts(self) -> None:
        parts = [keeper for keeper in self._keepers if keeper.part in self._parts]
        for keeper in parts:
            keeper.ask_to_end()
        deadline = time.monotonic() + STOP_SECONDS
        for keeper in parts:
            keeper.end(max(0, deadline - time.monotonic()))

    def _environment(self) -> dict[str, str]:
        return {**self._inherited, **self._settings, "PYTHONUNBUFFERED": "1"}

    def _record(self) -> None:
        with self._recording:
            write_record(self._running())

    def _running(self) -> RunningDemo:
        return RunningDemo(
            os.getpid(),
            psutil.Process().create_time(),
            self._ready,
            dict(self._settings),
            {keeper.part.name: keeper.pid for keeper in self._keepers},
        )


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Turn the first signal to end into KeyboardInterrupt, ignore the next ones."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    numbers = [number for name in names if (number := getattr(signal, name, None))]

    def interrupt(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
