"""What the terminal shows people."""

from __future__ import annotations

import pytest

from orchestrator import printing
from orchestrator.config import Configuration, every_configuration
from orchestrator.errors import StepFailed
from orchestrator.matrix import Cell
from orchestrator.report import report
from tests.orchestrator.recordings import (
    ANSWER,
    QUESTION,
    Happened,
    Recording,
    recorded,
)

A, B = "replica-a", "replica-b"
DEFAULT = Configuration()


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def shown(events, chosen=DEFAULT):
    return printing.rendered(printing.walkthrough("r-7k3m", chosen, events))


def test_a_run_shows_conversation_events_ledger_and_verdict():
    text = shown(recorded())
    assert "r-7k3m" in text
    assert QUESTION in text
    assert ANSWER in text
    assert "session: looked up ctx-41, found, 4 events" in text
    assert "nothing stored" in text
    assert "✔ Remembered. Turn 2 reached replica B" in text
    assert "path B→B" in text
    assert "Either would: continuity fix off, or affinity off." in text


def test_a_run_that_forgot_says_so():
    chosen = Configuration.parse({"continuity": "off"})
    happened = Happened(hook=False, sessions=("9e1e0d", "77ab21"), found=False)
    assert "✖ Forgot." in shown(recorded(happened), chosen)


def test_a_surprise_carries_its_own_mark_once():
    text = shown(recorded(Happened(replicas=(A, A))))
    assert text.count("⚠") == 1


def test_a_run_not_yet_begun_can_be_shown():
    assert "Not decided yet" in shown([])


def test_text_is_printed_as_text_not_as_markup():
    recording = Recording().sent("[bold]x[/bold] [/]").received(B, text="[red]y")
    recording.artifact(B, "x", data=[{}]).ledger({"replica-c": []}, unread=[A])
    text = shown(recording.events)
    assert '"[bold]x[/bold] [/]"' in text
    assert "[red]y" in text
    assert "1 data part" in text
    assert "1 data parts" not in text
    assert "not read" in text


def cell(chosen, happened):
    return Cell(chosen, report("r-7k3m", chosen, recorded(happened)))


def test_the_matrix_shows_outcome_path_and_what_could_not_run():
    first, second, third, *rest = every_configuration()
    failed = StepFailed("r-7k3m", 1, "failed.silent", "0123456789ab")
    cells = [
        cell(first, Happened(hook=False, sessions=("x", "y"), found=False)),
        cell(second, Happened()),
        Cell(third, failure=failed),
        *map(Cell, rest),
    ]
    text = printing.rendered(printing.matrix(cells))
    assert "✖ asks" in text
    assert "✔ answers B→B" in text
    assert "saw 5, 1 sess" in text
    assert "⚠ surprise" in text
    assert "0123456789ab" in text
    assert text.count("could not run") == 14
    assert "/ 16 as predicted" in text
