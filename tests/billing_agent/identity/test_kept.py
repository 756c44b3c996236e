"""Secrets kept in files."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from billing_agent.identity.kept import kept


def test_text_is_made_once(tmp_path):
    numbers = count()
    path = tmp_path / "folder" / "secret"
    assert [kept(path, lambda: str(next(numbers))) for _ in range(3)] == ["0"] * 3


def test_file_is_its_owners_only(tmp_path):
    kept(tmp_path / "secret", lambda: "text")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_threads_that_start_together_get_the_same(tmp_path):
    numbers = count()
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(kept, tmp_path / "secret", lambda: str(next(numbers)))
            for _ in range(32)
        ]
    assert len({job.result() for job in jobs}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


ASK = """
import pathlib, os, sys
from billing_agent.identity.kept import kept
sys.stdin.readline()
print(kept(pathlib.Path(sys.argv[1]), lambda: str(os.getpid())))
"""


def test_processes_that_start_together_get_the_same(tmp_path):
    command = [sys.executable, "-c", ASK, str(tmp_path / "secret")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    askers = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for asker in askers:
        asker.stdin.write("now\n")
        asker.stdin.flush()
    assert len({asker.communicate()[0] for asker in askers}) == 1
