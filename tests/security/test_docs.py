"""Every promise of docs/security.md names a test that exists."""

from __future__ import annotations

import re

from tests.child import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py):(\w+)`")


def test_every_test_named_exists():
    page = (ROOT / "docs" / "security.md").read_text()
    named = NAMED.findall(page)
    assert len(named) >= 40
    for path, function in named:
        source = (ROOT / path).read_text()
        assert re.search(rf"^(async )?def {function}\(", source, re.MULTILINE), function


def test_every_promise_is_held_by_a_test():
    page = (ROOT / "docs" / "security.md").read_text()
    tables = re.findall(r"\| promise \| held by \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    assert len(tables) >= 6
    for row in "".join(tables).splitlines():
        assert NAMED.search(row.rpartition(" | ")[2]), row
