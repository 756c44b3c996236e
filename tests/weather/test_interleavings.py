"""Random clients on both replicas never break the rules of tasks."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter

import pytest

from tests.billing_agent.contract.watch import rows, until
from tests.conftest import peers_of, running_demo
from tests.peer import state
from tests.weather.locks import turns_are_free
from tests.weather.play import play, state_of
from tests.weather.script import random_script
from tests.weather.stored import ENDS, interleaved, said, session_events, states

pytestmark = [pytest.mark.weather, pytest.mark.statement(35, 40, 41, 42)]

SCRIPTS = 300
AT_ONCE = 6


@pytest.fixture(scope="module")
def lively_demo():
    """A demo whose model takes a little while, so that clients meet running work."""
    settings = {"SCRIPTED_MODEL_LATENCY": "0.03", "RATE_BURST": "5000"}
    with running_demo(**settings) as running:
        yield running


async def test_random_interleavings_keep_the_rules(lively_demo):
    # pytest-randomly seeds this: a failure prints its script, and its seed plays it.
    scripts = [random_script(random) for _ in range(SCRIPTS)]
    found: list[str] = []
    async with peers_of(lively_demo) as make:
        work = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(
            *(_one(lively_demo, make, script, work, found) for script in scripts)
        )
    assert not found, "\n\n".join(found[:5])
    await until(lambda: turns_are_free(lively_demo))


async def _one(demo, make, script, work, found):
    async with work:
        subject = f"lively-{secrets.token_hex(4)}"
        peers = {name: await make(name, subject) for name in demo.replicas}
        played = await play(script, peers, subject)
        broken = played.faults + [
            rule async for rule in _broken(demo, played, list(peers.values()))
        ]
        if broken:
            found.append("\n".join([subject, *map(str, script), *broken]))


async def _broken(demo, played, peers):
    """Yield every rule that does not hold after a script."""
    await _nothing_under_way(demo, played)
    listed = (await peers[0].rpc("ListTasks", {"pageSize": 100}))["tasks"]
    tasks = {}
    for task in listed:
        try:
            tasks[task["id"]] = await peers[0].until(task["id"], deadline=30)
        except TimeoutError:
            yield f"{task['id']} never ends"
            return
    for task_id, task in tasks.items():
        other = await peers[1].get(task_id)
        if other != task:
            yield f"{task_id}: replicas differ: {state(task)}, {state(other)}"
        seen = await states(demo, task_id)
        ended = [entry for entry in seen if entry in ENDS]
        if len(ended) > 1 or (ended and seen[-1] != ended[0]):
            yield f"{task_id}: more than one end, or events after it: {seen}"
        if state(task) != seen[-1]:
            yield f"{task_id}: {state(task)}, but its events say {seen}"
        if task_id in played.canceled and state(task) != "CANCELED":
            yield f"{task_id}: canceled, and then {state(task)}"
    for of_send, events in played.streams:
        # Who follows a task sees its next turn after a question; a send does not.
        last = ENDS | {"INPUT_REQUIRED"} if of_send else ENDS
        if any(state_of(event) in last for event in events[:-1]):
            what = "send" if of_send else "subscription"
            yield f"events after the end of a {what}: {events}"
    async for lost in _lost(demo, played, tasks):
        yield lost


async def _nothing_under_way(demo, played):
    """Wait for what clients have left behind: nobody tells when it has been heard."""
    if all(sent.task_id for sent in played.sent):
        return
    query = """
        SELECT id, version FROM billing_agent_a2atask WHERE owner LIKE %s ORDER BY id
    """
    before = None
    while before != (now := await rows(demo, query, f"%/{played.subject}")):
        before = now
        await asyncio.sleep(0.5)


async def _lost(demo, played, tasks):
    """Yield what was acknowledged and is not where it belongs."""
    heard = Counter(
        message["messageId"] for task in tasks.values() for message in task["history"]
    )
    spoken = {}
    for context_id in {task["contextId"] for task in tasks.values()}:
        events = await session_events(demo, played.subject, context_id)
        spoken[context_id] = said(events)
        if interleaved(events):
            yield f"{context_id}: turns mixed"
    for sent in played.sent:
        if sent.task_id is None:
            continue
        if heard[sent.options["message_id"]] != 1:
            yield f"{sent}: in the tasks {heard[sent.options['message_id']]} times"
        task = tasks[sent.task_id]
        count = spoken[task["contextId"]].count(sent.text)
        if count > 1 or (not count and state(task) == "COMPLETED"):
            yield f"{sent}: in the session {count} times, {state(task)}"
