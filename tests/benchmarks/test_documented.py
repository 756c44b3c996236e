"""Every measurement is part of the whole run, and explained in the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from web.environment import BASE_DIR

FOLDER = BASE_DIR / "benchmarks"


def measures() -> list[str]:
    return [
        path.stem
        for path in sorted(FOLDER.glob("*.py"))
        if any(
            isinstance(node, ast.FunctionDef) and node.name == "measure"
            for node in ast.parse(path.read_text()).body
        )
    ]


@pytest.mark.parametrize("name", measures())
def test_measurement_is_run_with_all_others(name):
    assert f"{name}.measure," in (FOLDER / "__main__.py").read_text()


@pytest.mark.parametrize("name", measures())
def test_measurement_is_explained(name):
    page = Path(BASE_DIR / "docs" / "benchmarks.md").read_text()
    assert f"`benchmarks.{name}`" in page
