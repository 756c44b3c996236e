"""What the stores hold, against what the run's events said happened."""

from __future__ import annotations

import httpx
import pytest

from tests.peer import token
from tests.story.commands import manage_json
from tests.story.truth import CELLS

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def runs(demo):
    """The sixteen runs by their configuration: id and events."""
    by_configuration = {}
    for cell in manage_json(demo, "matrix")["cells"]:
        document = httpx.get(f"{demo.web_url}/runs/{cell['run']}.json").json()
        key = tuple(
            cell["config"][name]
            for name in ("sessions", "continuity", "affinity", "output")
        )
        by_configuration[key] = cell["run"], document["events"]
    return by_configuration


async def held_now(demo, run_id):
    """Return what the stores hold for a run's subject: (store, replica, session)."""
    bearer = await token(demo, f"orchestrator/{run_id}", client="orchestrator")
    found = set()
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}) as http:
        for replica, url in demo.replicas.items():
            answer = (await http.get(f"{url}/demo/ledger")).json()
            assert answer["replica"] == replica
            for store in answer["stores"]:
                where = replica if store["store"] == "memory" else ""
                found |= {
                    (store["store"], where, row["session_id"], row["events"])
                    for row in store["sessions"]
                }
    return found


@pytest.mark.parametrize("configuration", CELLS, ids=" ".join)
async def test_ledger_and_events_agree(demo, runs, configuration):
    run_id, events = runs[configuration]

    held = await held_now(demo, run_id)

    created = {
        (
            event["data"]["store"],
            event["part"] if event["data"]["store"] == "memory" else "",
            event["data"]["session_id"],
        )
        for event in events
        if event["kind"] == "session-created"
    }
    assert {row[:3] for row in held} == created
    seen = {
        (event["data"]["session_id"], event["part"]): event["data"]["events_seen"]
        for event in events
        if event["kind"] == "model-called"
    }
    for store, replica, session_id, count in held:
        parts = [replica] if store == "memory" else list(demo.replicas)
        # The last model call adds the model's own reply.
        last = max(seen.get((session_id, part), 0) for part in parts)
        assert count == last + 1


@pytest.mark.parametrize("configuration", CELLS, ids=" ".join)
async def test_the_runs_last_ledger_is_what_the_stores_hold(demo, runs, configuration):
    run_id, events = runs[configuration]
    last = [event for event in events if event["kind"] == "ledger-read"][-1]

    recorded = {
        (
            store["store"],
            store["replica"] if store["store"] == "memory" else "",
            row["session_id"],
            row["events"],
        )
        for store in last["data"]["stores"]
        for row in store["sessions"]
    }
    assert recorded == await held_now(demo, run_id)
