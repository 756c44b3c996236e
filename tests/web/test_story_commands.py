"""``walkthrough`` and ``matrix``: output and exit codes."""

from __future__ import annotations

import json
from contextlib import nullcontext
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command

from orchestrator.config import Configuration
from orchestrator.errors import StepFailed
from orchestrator.matrix import Cell
from orchestrator.report import report
from tests.orchestrator.recordings import Happened, recorded
from web.demo import visit
from web.demo.keeper import DemoError

COMMANDS = "web.management.commands"


def answered(monkeypatch, command, result):
    """Let the command's visit bring back ``result`` without a demo."""

    def visited(work, say):
        work.close()
        return result

    monkeypatch.setattr(f"{COMMANDS}.{command}.visit", visited)


def called(*words):
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as left:
        call_command(*words, stdout=out, stderr=err)
    return left.value.code, out.getvalue(), err.getvalue()


def test_a_walkthrough_as_predicted_exits_0_with_one_json_object(monkeypatch):
    answered(monkeypatch, "walkthrough", ("r-7k3m", recorded()))
    code, out, _ = called("walkthrough", "--json")
    assert code == 0
    assert json.loads(out) == report("r-7k3m", Configuration(), recorded())


def test_a_walkthrough_against_the_rule_exits_1(monkeypatch):
    answered(monkeypatch, "walkthrough", ("r-7k3m", recorded()))
    code, out, _ = called("walkthrough", "--continuity", "off")
    assert code == 1
    assert "Surprise" in out


def test_a_switch_position_that_does_not_exist_is_refused():
    with pytest.raises(CommandError, match="invalid choice: 'maybe'"):
        call_command("walkthrough", "--affinity", "maybe")


def cells(*happened):
    return [
        Cell(Configuration(), report("r-7k3m", Configuration(), recorded(each)))
        for each in happened
    ]


@pytest.mark.parametrize(
    ("found", "code", "count"),
    [
        (cells(Happened(), Happened()), 0, 2),
        (cells(Happened(), Happened(found=False)), 1, 1),
        (
            [
                *cells(Happened(), Happened(found=False)),
                Cell(Configuration(), failure=StepFailed("r", 1, "failed.agent", "0")),
            ],
            2,
            1,
        ),
    ],
)
def test_the_matrix_counts_and_exits_accordingly(monkeypatch, found, code, count):
    answered(monkeypatch, "matrix", found)
    left, out, _ = called("matrix", "--json")
    assert left == code
    assert json.loads(out)["as_predicted"] == count
    assert len(json.loads(out)["cells"]) == len(found)
    assert called("matrix")[0] == code


def test_a_command_without_a_demo_exits_2_with_one_line(monkeypatch):
    class Refusing:
        def __init__(self, **options):
            raise DemoError("no room")

    monkeypatch.setattr(visit, "find_running", lambda: None)
    monkeypatch.setattr(visit, "answers_at", lambda url: False)
    monkeypatch.setattr(visit, "Demo", Refusing)
    code, out, err = called("walkthrough")
    assert (code, out) == (2, "")
    assert err == "could not run: no room\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            psycopg.OperationalError("no connection after 4.00 sec"),
            "the database cannot be reached (DATABASE_URL)",
        ),
        (
            psycopg.errors.UndefinedTable('no "orchestrator_run"\nLINE 1: INSERT'),
            'the database is not ready, see `manage.py prepare`: no "orchestrator_run"',
        ),
    ],
)
def test_a_database_that_is_no_use_is_one_line_and_exit_2(monkeypatch, error, line):
    async def failing(chosen):
        raise error

    monkeypatch.setattr(visit, "visited", lambda say: nullcontext())
    monkeypatch.setattr(f"{COMMANDS}.walkthrough._play", failing)
    assert called("walkthrough") == (2, "", f"could not run: {line}\n")


def test_a_command_that_is_stopped_says_so_in_one_line(monkeypatch):
    async def stopped(chosen):
        raise KeyboardInterrupt

    monkeypatch.setattr(visit, "visited", lambda say: nullcontext())
    monkeypatch.setattr(f"{COMMANDS}.walkthrough._play", stopped)
    assert called("walkthrough") == (130, "", "stopped\n")
