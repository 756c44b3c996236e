"""Shared state has a declared table; a key outside it fails here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import billing_agent
from billing_agent.agent.state_keys import STATE_KEYS

ROOT = Path(billing_agent.__file__).parent.parent
SCOPES = ("user:", "app:")
# The session store handles whole scopes, keys and all.
STORES = ROOT / "billing_agent" / "stores"


def keys_in(source):
    """Return the state keys a module spells out, and whether it builds any."""
    spelled, built = set(), False
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            start = first.value if isinstance(first, ast.Constant) else ""
            built |= str(start).startswith(SCOPES)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            scope, _, name = node.value.partition(":")
            if f"{scope}:" in SCOPES and name.isidentifier():
                spelled.add(node.value)
    return spelled, built


SOURCES = [
    path
    for package in ("billing_agent", "web")
    for path in sorted((ROOT / package).rglob("*.py"))
    if STORES not in path.parents
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_undeclared_state_key(path):
    spelled, built = keys_in(path.read_text())
    assert spelled <= {row.key for row in STATE_KEYS}
    assert not built, "a shared state key must be spelled out, to be declared"


def test_every_key_has_a_scope_and_a_meaning():
    assert all(row.key.startswith(SCOPES) and row.meaning for row in STATE_KEYS)
    assert len({row.key for row in STATE_KEYS}) == len(STATE_KEYS)


def test_the_search_finds_what_it_looks_for():
    assert keys_in('state["user:colour"] = 1') == ({"user:colour"}, False)
    assert keys_in('state[f"app:{name}"] = 1') == (set(), True)
    assert keys_in('"""Text about user: state."""') == (set(), False)
