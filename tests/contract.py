"""Pytest plugin of ``make contract``: which statements have a passing test.

``--list-statements`` prints the tests of each statement instead of failing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

import pytest

from tests.statements import STATEMENTS

Verdict = Literal["passed", "failed", "skipped", "missing"]


def pytest_addoption(parser):
    parser.addoption(
        "--list-statements",
        action="store_true",
        help="list each statement's tests; do not fail when one is missing",
    )


def pytest_configure(config):
    config.pluginmanager.register(Contract(config), "contract")


class Contract:
    """Collects what became of each test that holds a statement."""

    def __init__(self, config):
        self.listing = config.getoption("--list-statements")
        self.tests = defaultdict(set)
        self.outcomes = defaultdict(set)

    def pytest_collection_modifyitems(self, items):
        for item in items:
            for mark in item.iter_markers("statement"):
                for number in mark.args:
                    if number not in STATEMENTS:
                        raise pytest.UsageError(f"{item.nodeid}: statement({number!r})")
                    self.tests[number].add(item.nodeid)

    def pytest_runtest_logreport(self, report):
        # Set-up and tear-down count when they went wrong.
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid].add(report.outcome)

    def verdict(self, number: int) -> Verdict:
        outcomes = [self.outcomes[test] for test in self.tests[number]]
        if any("failed" in seen for seen in outcomes):
            return "failed"
        if any(seen == {"passed"} for seen in outcomes):
            return "passed"
        return "skipped" if any(outcomes) else "missing"

    @property
    def held(self) -> int:
        return sum(self.verdict(number) == "passed" for number in STATEMENTS)

    def pytest_sessionfinish(self, session, exitstatus):
        if not self.listing and self.held < len(STATEMENTS):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("executor contract")
        for number, title in STATEMENTS.items():
            verdict = self.verdict(number)
            terminalreporter.line(f"{number:>2}: {verdict:<8} {title}")
            for test in sorted(self.tests[number]) if self.listing else []:
                terminalreporter.line(f"      {test}")
        terminalreporter.line(f"{self.held} of {len(STATEMENTS)}")
