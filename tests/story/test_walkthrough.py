"""The walkthrough command: its figures, and what its exit code says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import running_demo
from tests.story.commands import manage, manage_json

pytestmark = pytest.mark.processes


def test_the_default_run_is_remembered(demo):
    run = manage_json(demo, "walkthrough")

    assert run["config"] == {
        "continuity": "on",
        "affinity": "on",
        "output": "per-run",
        "sessions": "memory",
    }
    assert run["outcome"] == run["predicted"] == "answers"
    assert run["as_predicted"] is True
    assert run["path"] == ["B", "B"]
    assert run["events_seen"] == [1, 5]
    assert run["sessions"] == 1
    assert run["released"]["artifacts"] == 1
    assert run["released"]["intermediate"] == 0
    assert run["released"]["bytes"] > 0
    assert run["tenant"] == "acme"
    assert run["task_states"][-1] == "TASK_STATE_COMPLETED"
    assert run["duration_ms"] > 0
    assert run["sentence"] == (
        "Remembered. Turn 2 reached replica B, found session ctx-41 and saw 5 events."
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("continuity", "off"),
        ("affinity", "off"),
        ("output", "per-event"),
        ("sessions", "shared"),
    ],
)
def test_each_switch_can_be_given(demo, option, value):
    run = manage_json(demo, "walkthrough", f"--{option}", value)

    assert run["config"][option] == value
    assert run["as_predicted"] is True


def test_people_read_the_conversation_and_the_verdict(demo):
    shown = manage(demo, "walkthrough")

    assert shown.returncode == 0
    assert "Which line item do you mean?" in shown.stdout
    assert "Remembered." in shown.stdout


def test_an_unknown_value_is_told_in_one_line(demo):
    refused = manage(demo, "walkthrough", "--output", "everything")

    assert refused.returncode == 2
    assert "everything" in refused.stderr


@pytest.fixture(scope="module")
def broken_demo():
    """A demo whose replicas run with a continuity hook that does nothing."""

    def broken(part):
        if not part.name.startswith("replica-"):
            return part
        return replace(
            part, command=("tests/story/broken_replica.py", *part.command[1:])
        )

    with running_demo(change=broken) as running:
        yield running


def test_a_run_that_disagrees_with_its_prediction_is_a_surprise(broken_demo):
    run = manage_json(broken_demo, "walkthrough", code=1)

    assert run["predicted"] == "answers"
    assert run["outcome"] == "asks"
    assert run["as_predicted"] is False
    assert "Surprise." in run["sentence"]


def test_the_matrix_counts_surprises(broken_demo):
    matrix = manage_json(broken_demo, "matrix", code=1)

    assert matrix["as_predicted"] == 10
