"""The remaining commands, typed at a running demo and without one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.story.commands import ROOT, manage, manage_json

pytestmark = pytest.mark.processes


@pytest.mark.statement(44)
def test_sweep_leaves_living_and_ended_tasks_alone(demo):
    manage_json(demo, "walkthrough")

    swept = manage(demo, "sweep")

    assert swept.returncode == 0
    assert swept.stdout == "0 tasks failed\n"


def test_sweep_without_a_database_says_so_in_one_line(tmp_path):
    unset = {"DATABASE_URL", "WEB_URL", "PUBLIC_URL", "REPLICAS"}
    environment = {k: v for k, v in os.environ.items() if k not in unset}

    refused = subprocess.run(
        [sys.executable, "manage.py", "sweep"],
        cwd=ROOT,
        env={**environment, "VAR_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


def test_a_token_is_printed_alone_and_works(demo):
    printed = manage(demo, "token", "--tenant", "globex", "--subject", "attendee")

    assert printed.returncode == 0
    assert printed.stdout.count(".") == 2
    assert len(printed.stdout.splitlines()) == 1


def test_the_arithmetic_says_that_ctx_41_belongs_to_b(demo):
    routed = manage_json(demo, "route", "ctx-41")

    assert routed["replica"] == "replica-b"
    assert max(routed["scores"], key=routed["scores"].get) == "replica-b"
