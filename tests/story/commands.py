"""Runs the project's commands as a person would, against a running demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 120


def manage(demo: Any, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py`` with a demo's folder; nothing else tells it where that is."""
    unset = {"DATABASE_URL", "WEB_URL", "PUBLIC_URL", "REPLICAS"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment["VAR_DIR"] = str(demo.var_dir)
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def manage_json(demo: Any, *words: str, code: int = 0) -> Any:
    """Run a command with ``--json`` and return what it printed."""
    done = manage(demo, *words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)
