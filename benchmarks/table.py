"""The table of a benchmark run, for people and as JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from httpx import HTTPError
from rich.console import Console
from rich.table import Table

from benchmarks.explained import EXPLAINED
from benchmarks.ground import NotMeasured
from benchmarks.rows import Row, shown
from web.demo.keeper import DemoError

Measure = Callable[[bool], list[Row]]


def run(measures: Sequence[Measure], arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table; return 1 on a miss without a reason, else 0.

    A measurement that could not be made counts as such a miss.
    """
    chosen = _parser().parse_args(arguments)
    progress = Console(stderr=True, quiet=chosen.json, highlight=False)
    rows: list[Row] = []
    failures: list[str] = []
    for measure in measures:
        name = Path(inspect.getfile(measure)).stem
        progress.print(f"[dim]{name}: {(measure.__doc__ or '').strip()}")
        try:
            rows += measure(chosen.quick)
        except (NotMeasured, DemoError, HTTPError, psycopg.Error) as failure:
            failures.append(f"{name}: {failure}")
    if chosen.json:
        print(json.dumps(_document(rows, failures), ensure_ascii=False))
    elif chosen.markdown:
        print("\n".join(_markdown(rows)))
    else:
        _print(rows, failures)
    unexplained = [row for row in rows if not row.met and row.name not in EXPLAINED]
    return int(bool(unexplained or failures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Exit 1 on a missed bar without a known reason."
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument(
        "--markdown", action="store_true", help="print rows for docs/benchmarks.md"
    )
    parser.add_argument(
        "--quick", action="store_true", help="short and rough, to see that it works"
    )
    return parser


def _document(rows: Sequence[Row], failures: Sequence[str]) -> dict[str, Any]:
    return {
        "machine": _machine(),
        "rows": [{**row.as_dict(), "why": _why(row)} for row in rows],
        "not_measured": list(failures),
    }


def _print(rows: Sequence[Row], failures: Sequence[str]) -> None:
    table = Table("what", "bar", "measured", "", "figures, and why if missed")
    for row in rows:
        table.add_row(
            row.what,
            str(row.bar),
            shown(row.measured, row.bar.unit),
            "[green]met" if row.met else "[red]missed",
            "\n".join(filter(None, [row.detail, _why(row)])),
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in _machine().items()))
    for failure in failures:
        console.print(f"not measured: {failure}", style="red", markup=False)


def _markdown(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        measured = shown(row.measured, row.bar.unit)
        result = measured if row.met else f"**{measured}**"
        details = "; ".join(filter(None, [row.detail, _why(row)]))
        yield f"| {row.what} | {row.bar} | {result} | {details} |"


def _why(row: Row) -> str:
    return "" if row.met else EXPLAINED.get(row.name, "no reason known")


def _machine() -> dict[str, Any]:
    load = os.getloadavg()[1] if hasattr(os, "getloadavg") else None
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load over 5 minutes": load and round(load, 1),
    }
