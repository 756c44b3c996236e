"""What happens to running work when its replica is killed or told to end."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys

import httpx
import pytest

from tests.billing_agent.contract.watch import model_calls, rows, until
from tests.conftest import peers_of, running_demo
from tests.peer import Peer, state, token
from tests.ports import free_port_base
from tests.story.commands import ROOT
from tests.weather.locks import INVOICES, TASKS, locked, waiting

pytestmark = pytest.mark.processes

AUDIT = "audit the last 15 invoices"
OPAQUE = r"^Agent execution failed\. \(error_id: [0-9a-f]{12}\)$"


@pytest.fixture(scope="module")
def brittle_demo():
    """A demo that gives up on runs after two seconds and sweeps often."""
    settings = {
        "SCRIPTED_MODEL_LATENCY": "0.1",
        "RUN_TIMEOUT": "2",
        "SWEEP_INTERVAL": "0.3",
        "DRAIN_GRACE": "5",
    }
    with running_demo(**settings) as running:
        yield running


@pytest.fixture
async def make(brittle_demo):
    # The test before may have killed a replica; the supervisor brings it back.
    for address in brittle_demo.replicas.values():
        await until(lambda address=address: _status(address, "/readyz", 200))
    async with peers_of(brittle_demo) as factory:
        yield factory


@pytest.mark.statement(44)
async def test_a_task_whose_replica_was_killed_is_failed_once_for_everyone(
    brittle_demo, make
):
    subject = f"killed-{secrets.token_hex(4)}"
    a, b = await make("replica-a", subject), await make("replica-b", subject)
    task = await b.send(AUDIT, context_id="ctx-41", now=True)
    await until(lambda: model_calls(brittle_demo, task["id"]))

    async with a.subscribe(task["id"]) as events:
        await anext(events)
        os.kill(brittle_demo.pid_of("replica-b"), signal.SIGKILL)
        rest = [event async for event in events]

    assert "TASK_STATE_FAILED" in str(rest[-1])
    failed = await a.get(task["id"])
    assert state(failed) == "FAILED"
    assert re.match(OPAQUE, failed["status"]["message"]["parts"][0]["text"])
    states = await rows(
        brittle_demo,
        "SELECT count(*) FROM billing_agent_a2ataskevent WHERE task_id = %s"
        " AND version > (SELECT version - 1 FROM billing_agent_a2atask WHERE id = %s)",
        task["id"],
        task["id"],
    )
    assert states == [(1,)]
    assert _logged(brittle_demo, failed) == 1
    # The conversation goes on: its cut-off tool call is closed first.
    again = await a.send("list my invoices", context_id="ctx-41")
    assert state(again) == "COMPLETED"


@pytest.mark.statement(45)
async def test_a_run_longer_than_its_timeout_fails_and_stops(brittle_demo, make):
    b = await make("replica-b")

    task = await b.send("audit the last 24 invoices", now=True, output="per-event")
    failed = await b.until(task["id"])

    assert state(failed) == "FAILED"
    assert re.match(OPAQUE, failed["status"]["message"]["parts"][0]["text"])


@pytest.fixture
async def third_replica(request, brittle_demo):
    """A replica process of our own, beside the demo's: (process, address).

    Its settings are the demo's, and those that a test gives as the parameter.
    """
    port = free_port_base()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "manage.py",
        "replica",
        "replica-a",
        "--port",
        str(port),
        cwd=ROOT,
        env={
            **os.environ,
            **brittle_demo.environment,
            **getattr(request, "param", {}),
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    await until(lambda: _status(address, "/readyz", 200))
    yield process, address
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.statement(46)
async def test_sigterm_turns_work_away_lets_runs_end_and_exits_with_zero(
    brittle_demo, third_replica
):
    process, address = third_replica
    peer = Peer(address, await token(brittle_demo, f"drain-{secrets.token_hex(4)}"))
    task = await peer.send("audit the last 10 invoices", now=True)
    await until(lambda: model_calls(brittle_demo, task["id"]))

    process.send_signal(signal.SIGTERM)

    await until(lambda: _status(address, "/readyz", 503))
    refused = await peer.http.post("/a2a/", json={})
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["error"]["code"] < 0
    await peer.http.aclose()
    assert await asyncio.wait_for(process.wait(), 15) == 0
    query = "SELECT state FROM billing_agent_a2atask WHERE id = %s"
    assert await rows(brittle_demo, query, task["id"]) == [("TASK_STATE_COMPLETED",)]


@pytest.mark.statement(46)
@pytest.mark.parametrize("mode", ["blocking", "stream"])
async def test_sigterm_lets_a_request_begin_that_came_before_it(
    brittle_demo, third_replica, mode
):
    process, address = third_replica
    peer = Peer(address, await token(brittle_demo, f"drain-{secrets.token_hex(4)}"))
    async with locked(brittle_demo, TASKS):
        sending = asyncio.ensure_future(_sent(peer, mode))
        await waiting(brittle_demo, TASKS)
        process.send_signal(signal.SIGTERM)
        await until(lambda: _status(address, "/readyz", 503))

    assert "TASK_STATE_COMPLETED" in str(await sending)
    await peer.http.aclose()
    assert await asyncio.wait_for(process.wait(), 15) == 0


@pytest.mark.statement(46)
@pytest.mark.parametrize(
    "third_replica", [{"DRAIN_GRACE": "0.2", "RUN_TIMEOUT": "60"}], indirect=True
)
async def test_sigterm_fails_a_run_that_outlasts_the_grace_period(
    brittle_demo, third_replica
):
    process, address = third_replica
    peer = Peer(address, await token(brittle_demo, f"drain-{secrets.token_hex(4)}"))
    async with (
        locked(brittle_demo, INVOICES),
        peer.stream(AUDIT) as events,
    ):
        task_id = (await anext(events))["task"]["id"]
        await waiting(brittle_demo, INVOICES)

        process.send_signal(signal.SIGTERM)

        last = [event async for event in events][-1]["statusUpdate"]["status"]
    assert last["state"] == "TASK_STATE_FAILED"
    assert re.match(OPAQUE, last["message"]["parts"][0]["text"])
    await peer.http.aclose()
    assert await asyncio.wait_for(process.wait(), 15) == 0
    query = "SELECT state FROM billing_agent_a2atask WHERE id = %s"
    assert await rows(brittle_demo, query, task_id) == [("TASK_STATE_FAILED",)]


async def _sent(peer, mode):
    """Send a message; return what is told last."""
    if mode == "blocking":
        return await peer.send("list my invoices")
    async with peer.stream("list my invoices") as events:
        return [event async for event in events][-1]


@pytest.mark.statement(46)
async def test_the_router_falls_over_while_a_replica_drains(brittle_demo, make):
    router = await make("router")
    b = await make("replica-b")
    busy = await b.send("audit the last 10 invoices", now=True)
    await until(lambda: model_calls(brittle_demo, busy["id"]))
    os.kill(brittle_demo.pid_of("replica-b"), signal.SIGTERM)
    await until(lambda: _status(brittle_demo.replicas["replica-b"], "/readyz", 503))

    # ctx-41 belongs to B.
    task = await router.send("list my invoices", context_id="ctx-41")

    assert state(task) == "COMPLETED"
    await until(lambda: _status(brittle_demo.replicas["replica-b"], "/readyz", 200))


async def _status(address, path, wanted):
    try:
        async with httpx.AsyncClient() as client:
            return (await client.get(address + path)).status_code == wanted
    except httpx.TransportError:
        return False


def _logged(demo, failed):
    """Return how many log lines of all replicas carry the failure's error id."""
    text = failed["status"]["message"]["parts"][0]["text"]
    error_id = re.search(r"error_id: (\w+)", text).group(1)
    logs = [path.read_text() for path in (demo.var_dir / "log").glob("replica-*.log")]
    return sum(log.count(f"[error_id={error_id}]") for log in logs)


@pytest.mark.statement(44)
async def test_a_restarted_replica_fails_what_its_last_process_left(
    slow_demo, make_slow_peer
):
    subject = f"restarted-{secrets.token_hex(4)}"
    a = await make_slow_peer("replica-a", subject)
    b = await make_slow_peer("replica-b", subject)
    other = await a.send(AUDIT, now=True)
    task = await b.send(AUDIT, now=True)
    await until(lambda: model_calls(slow_demo, task["id"]))
    await until(lambda: model_calls(slow_demo, other["id"]))

    os.kill(slow_demo.pid_of("replica-b"), signal.SIGKILL)

    # The run timeout of this demo is 20 seconds; nobody waits for it.
    failed = await a.until(task["id"], deadline=18)
    assert state(failed) == "FAILED"
    assert re.match(OPAQUE, failed["status"]["message"]["parts"][0]["text"])
    assert state(await a.until(other["id"])) == "COMPLETED"
    await until(lambda: _status(slow_demo.replicas["replica-b"], "/readyz", 200))
