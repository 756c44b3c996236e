"""Rows against their bars."""

from __future__ import annotations

import pytest

from benchmarks.rows import Bar, Row, percentile, shown, spread


def test_bar_is_a_limit_from_above():
    assert Bar(15, "ms").met_by(15)
    assert not Bar(15, "ms").met_by(15.1)


def test_bar_is_a_limit_from_below_where_more_is_better():
    assert Bar(3, "x", at_least=True).met_by(3)
    assert not Bar(3, "x", at_least=True).met_by(2.9)


def test_bar_is_written_with_its_direction_and_unit():
    assert str(Bar(0.7, "x", at_least=True)) == "≥ 0.70 ×"
    assert str(Bar(400, "ms")) == "≤ 400 ms"
    assert str(Bar(0, "")) == "≤ 0"


def test_row_says_whether_its_bar_was_reached():
    row = Row("router-latency", "what", Bar(3, "ms"), 2.0004, "detail")
    assert row.as_dict() == {
        "name": "router-latency",
        "what": "what",
        "bar": "≤ 3 ms",
        "measured": 2.0,
        "unit": "ms",
        "met": True,
        "detail": "detail",
    }


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.512, "s", "2.51 s"),
        (16.26, "ms", "16.3 ms"),
        (251.7, "ms", "252 ms"),
        (-3.21, "ms", "-3.2 ms"),
        (16, "", "16"),
    ],
)
def test_value_is_shown_in_as_many_digits_as_mean_something(value, unit, text):
    assert shown(value, unit) == text


def test_percentile_is_a_value_that_was_measured():
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1) == 100
    assert percentile([7.0], 0.5) == 7


def test_percentile_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_spread_names_median_tail_and_number():
    assert spread([1.0, 2.0, 9.0]) == "p50 2 ms, p99 9 ms of 3"
