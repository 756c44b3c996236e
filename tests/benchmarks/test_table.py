"""The exit code and the forms of the table."""

from __future__ import annotations

import json

import pytest

from benchmarks import table
from benchmarks.ground import NotMeasured
from benchmarks.rows import Bar, Row

BAR = Bar(10, "ms")


def good(quick):
    """Measure something good."""
    return [Row("good", "a good thing", BAR, 5, "5 of 5")]


def bad(quick):
    """Measure something bad."""
    return [Row("bad", "a bad thing", BAR, 50, "of 5")]


def impossible(quick):
    """Measure nothing."""
    raise NotMeasured("HAProxy is not installed")


@pytest.fixture
def explained(monkeypatch):
    monkeypatch.setitem(table.EXPLAINED, "bad", "the disk is slow")


def test_every_bar_reached_is_success(capsys):
    assert table.run([good], []) == 0
    assert "met" in capsys.readouterr().out


def test_miss_without_a_reason_is_failure(capsys):
    assert table.run([good, bad], []) == 1
    assert "no reason known" in capsys.readouterr().out


def test_miss_with_a_reason_is_success_and_says_it(capsys, explained):
    assert table.run([bad], []) == 0
    out = capsys.readouterr().out
    assert "missed" in out
    assert "the disk is slow" in out


def test_what_could_not_be_measured_is_failure_and_the_rest_is_still_shown(capsys):
    assert table.run([impossible, good], []) == 1
    out = capsys.readouterr().out
    assert "test_table: HAProxy is not installed" in out
    assert "a good thing" in out


def test_json_is_one_object_and_nothing_else(capsys, explained):
    table.run([good, bad, impossible], ["--json"])
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [(row["name"], row["met"], row["why"]) for row in document["rows"]] == [
        ("good", True, ""),
        ("bad", False, "the disk is slow"),
    ]
    assert document["not_measured"] == ["test_table: HAProxy is not installed"]
    assert document["machine"]["cores"]
    assert captured.err == ""


def test_markdown_is_a_line_for_each_row(capsys):
    table.run([good, bad], ["--markdown"])
    assert capsys.readouterr().out.splitlines() == [
        "| a good thing | ≤ 10 ms | 5 ms | 5 of 5 |",
        "| a bad thing | ≤ 10 ms | **50 ms** | of 5; no reason known |",
    ]


def test_quick_is_passed_on():
    asked = []
    table.run([lambda quick: asked.append(quick) or []], ["--quick", "--json"])
    assert asked == [True]
