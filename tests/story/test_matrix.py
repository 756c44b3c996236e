"""The sixteen cells, measured on real processes."""

from __future__ import annotations

import pytest

from tests.story.commands import manage_json
from tests.story.truth import CELLS, ROWS

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def matrix(demo):
    return manage_json(demo, "matrix")


def cell_of(matrix, sessions, continuity, affinity, output):
    wanted = {
        "continuity": continuity,
        "affinity": affinity,
        "output": output,
        "sessions": sessions,
    }
    (cell,) = [cell for cell in matrix["cells"] if cell["config"] == wanted]
    return cell


def test_all_sixteen_are_as_predicted(matrix):
    assert matrix["as_predicted"] == 16
    assert len(matrix["cells"]) == 16
    outcomes = [cell["outcome"] for cell in matrix["cells"]]
    assert (outcomes.count("answers"), outcomes.count("asks")) == (6, 10)


@pytest.mark.statement(28)
@pytest.mark.parametrize(("sessions", "continuity", "affinity", "output"), CELLS)
def test_each_cell_measures_what_the_truth_table_says(
    matrix, sessions, continuity, affinity, output
):
    cell = cell_of(matrix, sessions, continuity, affinity, output)
    path, outcome, seen, held = ROWS[sessions, continuity, affinity]

    assert cell["outcome"] == cell["predicted"] == outcome
    assert "".join(cell["path"]) == path
    assert cell["events_seen"] == seen
    assert cell["sessions"] == held
    assert cell["tenant"] == "acme"


@pytest.mark.parametrize(("sessions", "continuity", "affinity", "output"), CELLS)
def test_output_decides_what_is_released_and_nothing_else(
    matrix, sessions, continuity, affinity, output
):
    released = cell_of(matrix, sessions, continuity, affinity, output)["released"]
    answers = ROWS[sessions, continuity, affinity][1] == "answers"

    if output == "per-run":
        assert released["artifacts"] == (1 if answers else 0)
        assert released["intermediate"] == 0
    elif answers:
        assert released["artifacts"] > 1
        assert released["intermediate"] >= 1
