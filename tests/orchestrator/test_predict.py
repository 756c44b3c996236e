"""The rule, against the truth table of the story."""

from __future__ import annotations

import pytest

from orchestrator.config import Configuration, Output, every_configuration
from orchestrator.predict import Outcome, deciding_switches, predict

# sessions, continuity, affinity: outcome, events seen, sessions, path
TRUTH = [
    ("memory off off", "asks", 1, 2, "BA"),
    ("memory off on", "asks", 1, 2, "BB"),
    ("memory on off", "asks", 1, 2, "BA"),
    ("memory on on", "answers", 5, 1, "BB"),
    ("shared off off", "asks", 1, 2, "BA"),
    ("shared off on", "asks", 1, 2, "BB"),
    ("shared on off", "answers", 5, 1, "BA"),
    ("shared on on", "answers", 5, 1, "BB"),
]


def chosen(row, output="per-run"):
    sessions, continuity, affinity = row.split()
    return Configuration.parse(
        {
            "sessions": sessions,
            "continuity": continuity,
            "affinity": affinity,
            "output": output,
        }
    )


@pytest.mark.parametrize("output", list(Output))
@pytest.mark.parametrize(("row", "outcome", "seen", "sessions", "path"), TRUTH)
def test_the_rule_states_the_truth_table(row, outcome, seen, sessions, path, output):
    rule = predict(chosen(row, output))
    assert rule.outcome == outcome
    assert rule.events_seen == (1, seen)
    assert rule.sessions == sessions
    assert rule.path == tuple(path)
    assert rule.moves == (path == "BA")


def test_six_of_sixteen_answer():
    outcomes = [predict(each).outcome for each in every_configuration()]
    assert outcomes.count(Outcome.ANSWERS) == 6
    assert outcomes.count(Outcome.ASKS) == 10


@pytest.mark.parametrize("affinity", ["on", "off"])
def test_one_replica_never_hands_a_conversation_over(affinity):
    rule = predict(chosen(f"memory on {affinity}"), replicas=1)
    assert rule.outcome == Outcome.ANSWERS
    assert not rule.moves


@pytest.mark.parametrize(
    ("row", "switches"),
    [
        ("memory on on", ("continuity", "affinity")),
        ("memory on off", ("affinity", "sessions")),
        ("memory off on", ("continuity",)),
        ("memory off off", ()),
        ("shared on on", ("continuity",)),
        ("shared on off", ("continuity", "sessions")),
        ("shared off on", ("continuity",)),
        ("shared off off", ("continuity",)),
    ],
)
def test_the_switches_that_alone_would_change_the_outcome(row, switches):
    assert deciding_switches(chosen(row)) == switches
