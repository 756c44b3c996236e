"""What a measurement comes to: a row of the table, held against its bar."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["x", "ms", "s", "KB", ""]


@dataclass(frozen=True, slots=True)
class Bar:
    """The value to reach: at most ``limit``, or at least, when that is better."""

    limit: float
    unit: Unit
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        """Return whether a measured value reaches the bar."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {shown(self.limit, self.unit)}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Args:
        name: how ``explained`` knows it, ``router-latency`` say.
        what: what was measured, for people.
        bar: what is to be reached.
        measured: what came out, in the bar's unit.
        detail: the figures it was made of.
    """

    name: str
    what: str
    bar: Bar
    measured: float
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether the bar was reached."""
        return self.bar.met_by(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``--json`` prints it."""
        return {
            "name": self.name,
            "what": self.what,
            "bar": str(self.bar),
            "measured": round(self.measured, 3),
            "unit": self.bar.unit,
            "met": self.met,
            "detail": self.detail,
        }


def shown(value: float, unit: Unit) -> str:
    """Return a value with its unit, in as many digits as mean something."""
    digits = 0 if value >= 100 or value == int(value) else 2 if unit in "xs" else 1
    return f"{value:.{digits}f} {'×' if unit == 'x' else unit}".strip()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all values does not exceed.

    Raises:
        ValueError: there are no values.
    """
    ranked = sorted(values)
    if not ranked:
        raise ValueError("no values")
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def spread(values: Sequence[float], unit: Unit = "ms") -> str:
    """Return median, 99th percentile and number of values, for people."""
    middle = statistics.median(values)
    late = percentile(values, 0.99)
    return f"p50 {shown(middle, unit)}, p99 {shown(late, unit)} of {len(values)}"
