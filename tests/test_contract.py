"""``make contract`` counts a statement only when a test of it passed."""

from __future__ import annotations

import pytest

from tests.child import ROOT, Child
from tests.statements import STATEMENTS

SAMPLE = """
import pytest

@pytest.mark.statement(1)
def test_one(): pass

@pytest.mark.statement(2, 3)
def test_two_and_three(): pass

@pytest.mark.statement(3)
def test_three(): assert False

@pytest.mark.statement(4)
def test_four(): pytest.skip("no reason")
"""


@pytest.fixture
def contract(tmp_path):
    def run(sample=SAMPLE, *options):
        (tmp_path / "test_sample.py").write_text(sample)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = statement(n): n\n")
        arguments = ["-p", "tests.contract", "-p", "no:randomly", "-p", "no:django"]
        child = Child(
            *["-m", "pytest", *arguments, *options, "--rootdir", str(tmp_path)],
            *["-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
            PYTHONPATH=str(ROOT),
        )
        with child:
            return child.wait(), child.output.splitlines()

    return run


def verdicts(lines):
    heads = {line[:2]: line.split()[1] for line in lines if line[2:4] == ": "}
    return {int(number): verdict for number, verdict in heads.items()}


def test_every_statement_has_a_verdict(contract):
    code, lines = contract()
    found = verdicts(lines)
    assert list(found) == list(STATEMENTS)
    assert (found[1], found[2], found[3]) == ("passed", "passed", "failed")
    assert (found[4], found[5]) == ("skipped", "missing")
    assert f"2 of {len(STATEMENTS)}" in lines
    assert code == 1


def test_closing_line_is_the_runners_own(contract):
    _, lines = contract()
    assert "1 failed, 2 passed, 1 skipped" in lines[-1]


def test_missing_statement_fails_although_no_test_does(contract):
    code, _ = contract("def test_nothing(): pass")
    assert code == 1


def test_listing_names_the_tests_and_does_not_fail(contract):
    sample = SAMPLE.replace("assert False", "pass")
    code, lines = contract(sample, "--list-statements")
    assert any("test_two_and_three" in line for line in lines)
    assert code == 0


def test_unknown_number_is_a_mistake(contract):
    code, lines = contract(
        "import pytest\n@pytest.mark.statement(99)\ndef test(): pass"
    )
    assert code == 4
    assert any("statement(99)" in line for line in lines)
