from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from a2a.server.cluster import TaskVersion, VersionedEvent
from a2a.types import Artifact, Part, TaskArtifactUpdateEvent

from billing_agent.stores.event_stream import EventStream
from billing_agent.stores.tasks import TaskStore
from tests.billing_agent.stores.test_tasks import (
    AWKWARD,
    COMPLETED,
    INPUT_REQUIRED,
    MINE,
    WORKING,
    a_task,
    status_event,
)


@pytest.fixture
def save(pool):
    """Save states of t1 one after another, each with its event."""
    store = TaskStore(pool)
    last = TaskVersion.MISSING

    async def save(state, event=None):
        nonlocal last
        event = event or status_event(state)
        last = await store.save(
            a_task(state), event=event, prev_version=last, context=MINE
        )

    return save


@pytest.fixture
def follow(pool):
    """Follow t1 in the background; what came is in ``.events`` of the task."""
    followers = []

    def follow(bus, after=TaskVersion.MISSING):
        stream = EventStream(pool, bus)
        events = []

        async def run():
            async with aclosing(stream.subscribe("t1", after=after)) as subscription:
                async for versioned in subscription:
                    events.append(versioned)  # noqa: PERF401 - seen as they come

        task = asyncio.create_task(run())
        task.events = events
        task.stream = stream
        followers.append(task)
        return task

    yield follow
    for follower in followers:
        follower.cancel()


def versions(follower):
    return [versioned.version._value for versioned in follower.events]


@pytest.mark.statement(41)
async def test_both_replicas_see_every_event_in_order(
    save, follow, start_bus, eventually
):
    await save(WORKING)
    followers = [follow(await start_bus()) for _ in range(2)]
    await eventually(lambda: all(versions(one) == [1] for one in followers))
    for state in (WORKING, INPUT_REQUIRED, COMPLETED):
        await save(state)

    await asyncio.gather(*followers)

    assert [versions(one) for one in followers] == [[1, 2, 3, 4]] * 2
    assert [v.event.status.state for v in followers[0].events] == [
        WORKING,
        WORKING,
        INPUT_REQUIRED,
        COMPLETED,
    ]


async def test_only_what_is_newer_is_read(save, follow, bus):
    for state in (WORKING, WORKING, COMPLETED):
        await save(state)
    follower = follow(bus, after=TaskVersion(2))
    await follower
    assert versions(follower) == [3]


async def test_a_task_that_has_ended_ends_after_its_rows(save, follow, bus):
    await save(WORKING)
    await save(COMPLETED)
    seen = follow(bus)
    await seen
    late = follow(bus, after=TaskVersion(2))
    await late
    assert (versions(seen), versions(late)) == ([1, 2], [])


async def test_a_task_that_does_not_exist_ends_at_once(follow, bus):
    follower = follow(bus)
    await follower
    assert follower.events == []


async def test_events_of_every_kind_come_back_as_they_were(save, follow, bus):
    artifact = TaskArtifactUpdateEvent(
        task_id="t1",
        artifact=Artifact(artifact_id="a", parts=[Part(text=AWKWARD)]),
        append=True,
    )
    kinds = [a_task(WORKING), artifact, status_event(COMPLETED)]
    for state, event in zip((WORKING, WORKING, COMPLETED), kinds, strict=True):
        await save(state, event)
    follower = follow(bus)
    await follower
    assert [versioned.event for versioned in follower.events] == kinds


async def test_events_written_while_nobody_could_listen_are_caught_up(
    save, follow, bus, kill, eventually
):
    await save(WORKING)
    follower = follow(bus)
    await eventually(lambda: versions(follower) == [1])

    await kill("billing-agent bus")
    await save(WORKING)
    await save(COMPLETED)

    await asyncio.wait_for(follower, 10)
    assert versions(follower) == [1, 2, 3]


async def test_a_lost_reading_connection_loses_no_event(
    save, follow, bus, kill, eventually
):
    await save(WORKING)
    follower = follow(bus)
    await eventually(lambda: versions(follower) == [1])

    await kill("billing-agent stores")
    await save(COMPLETED)

    await asyncio.wait_for(follower, 10)
    assert versions(follower) == [1, 2]


async def test_a_subscriber_that_leaves_leaves_nothing_behind(
    save, follow, bus, eventually
):
    await save(WORKING)
    stays, goes = follow(bus), follow(bus)
    await eventually(lambda: versions(stays) == versions(goes) == [1])
    goes.cancel()
    await asyncio.wait({goes})
    assert goes.stream._waiting == {}
    await save(COMPLETED)
    await stays
    assert versions(stays) == [1, 2]


async def test_publishing_and_destroying_are_left_to_the_store(pool, bus):
    stream = EventStream(pool, bus)
    event = VersionedEvent(status_event(WORKING), TaskVersion(1))
    await stream.publish("t1", event)
    await stream.destroy("t1")
