from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from a2a.server.cluster import TaskVersion
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import ListTasksRequest, TaskState
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import ListTasksCursor, encode_list_tasks_cursor

from billing_agent.stores.tasks import TaskStore
from tests.billing_agent.stores.test_tasks import (
    COMPLETED,
    MINE,
    THEIRS,
    WORKING,
    a_task,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("postgres", marks=pytest.mark.django_db(transaction=True)),
    ]
)
def store(request):
    """The same cases hold for a2a-sdk's own store and ours."""
    if request.param == "memory":
        return InMemoryTaskStore()
    return TaskStore(request.getfixturevalue("pool"))


async def put(store, task, context=MINE):
    if isinstance(store, TaskStore):
        await store.save(task, prev_version=TaskVersion.MISSING, context=context)
    else:
        await store.save(task, context)


@pytest.fixture
async def seven(store):
    """Tasks t0 to t6, a minute apart; even ones in ctx-0, every third one done."""
    for number in range(7):
        task = a_task(COMPLETED if number % 3 == 0 else WORKING, f"t{number}")
        task.context_id = f"ctx-{number % 2}"
        task.status.timestamp.FromDatetime(START + timedelta(minutes=number))
        await put(store, task)
    other = a_task(task_id="t-theirs")
    await put(store, other, THEIRS)


def asked(**fields):
    return ListTasksRequest(**fields)


async def names(store, request, context=MINE):
    response = await store.list(request, context)
    return [task.id for task in response.tasks]


@pytest.mark.usefixtures("seven")
async def test_the_owners_tasks_come_latest_first(store):
    response = await store.list(asked(), MINE)
    assert [task.id for task in response.tasks] == [f"t{n}" for n in range(6, -1, -1)]
    assert (response.total_size, response.page_size) == (7, 50)
    assert response.next_page_token == ""
    assert await names(store, asked(), THEIRS) == ["t-theirs"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"context_id": "ctx-1"}, ["t5", "t3", "t1"]),
        ({"context_id": "none"}, []),
        ({"status": TaskState.TASK_STATE_COMPLETED}, ["t6", "t3", "t0"]),
        ({"status": TaskState.TASK_STATE_FAILED}, []),
        ({"context_id": "ctx-0", "status": TaskState.TASK_STATE_WORKING}, ["t4", "t2"]),
    ],
)
@pytest.mark.usefixtures("seven")
async def test_filters_narrow_the_list_and_its_total(store, filters, expected):
    response = await store.list(asked(**filters), MINE)
    assert [task.id for task in response.tasks] == expected
    assert response.total_size == len(expected)


@pytest.mark.usefixtures("seven")
async def test_tasks_since_a_moment_include_that_moment(store):
    request = asked()
    request.status_timestamp_after.FromDatetime(START + timedelta(minutes=5))
    assert await names(store, request) == ["t6", "t5"]
    request.status_timestamp_after.FromDatetime(
        START + timedelta(minutes=5, microseconds=1)
    )
    assert await names(store, request) == ["t6"]


@pytest.mark.usefixtures("seven")
async def test_pages_hold_every_task_once(store):
    pages, token = [], ""
    while True:
        response = await store.list(asked(page_size=3, page_token=token), MINE)
        assert (response.total_size, response.page_size) == (7, 3)
        pages.append([task.id for task in response.tasks])
        token = response.next_page_token
        if not token:
            break
    assert pages == [["t6", "t5", "t4"], ["t3", "t2", "t1"], ["t0"]]


@pytest.mark.usefixtures("seven")
async def test_a_last_page_that_is_full_has_no_next(store):
    response = await store.list(asked(page_size=7), MINE)
    assert len(response.tasks) == 7
    assert response.next_page_token == ""


async def test_tasks_of_one_moment_come_in_a_fixed_order(store):
    for name in ["b", "A", "a", "ä", "B"]:
        task = a_task(task_id=name)
        task.status.timestamp.FromDatetime(START)
        await put(store, task)
    first = await store.list(asked(page_size=2), MINE)
    rest = asked(page_size=9, page_token=first.next_page_token)
    assert [task.id for task in first.tasks] == ["ä", "b"]
    assert await names(store, rest) == ["a", "B", "A"]


@pytest.mark.usefixtures("seven")
async def test_a_page_token_outlives_its_task(store):
    first = await store.list(asked(page_size=3), MINE)
    await store.delete("t4", MINE)
    rest = asked(page_token=first.next_page_token)
    assert await names(store, rest) == ["t3", "t2", "t1", "t0"]


@pytest.mark.usefixtures("seven")
async def test_a_position_past_the_end_is_an_empty_page_with_its_total(store):
    token = encode_list_tasks_cursor(ListTasksCursor(0, "a"))
    response = await store.list(asked(page_token=token), MINE)
    assert (list(response.tasks), response.total_size) == ([], 7)


@pytest.mark.django_db(transaction=True)
@pytest.mark.case(9)
@pytest.mark.parametrize(
    "token",
    [
        "x",
        "é",
        "dDE=",
        "\ud800".encode("utf-8", "surrogatepass").hex(),
        encode_list_tasks_cursor(ListTasksCursor(None, "t1")),
        encode_list_tasks_cursor(ListTasksCursor(10**40, "t1")),
        encode_list_tasks_cursor(ListTasksCursor(-(10**40), "t1")),
        encode_list_tasks_cursor(ListTasksCursor(0, "a\0b")),
        encode_list_tasks_cursor(ListTasksCursor(0, "\ud800")),
        "W1tb" * 50_000,
    ],
)
async def test_a_bad_page_token_is_the_callers_mistake(pool, token):
    with pytest.raises(InvalidParamsError):
        await TaskStore(pool).list(asked(page_token=token), MINE)


@pytest.mark.django_db(transaction=True)
async def test_a_state_that_does_not_exist_is_the_callers_mistake(pool):
    with pytest.raises(InvalidParamsError):
        await TaskStore(pool).list(asked(status=99), MINE)


@pytest.mark.django_db(transaction=True)
async def test_a_status_without_a_timestamp_counts_from_its_save(pool):
    store = TaskStore(pool)
    await put(store, a_task(task_id="now"))
    task = a_task(task_id="earlier")
    task.status.timestamp.FromDatetime(START - timedelta(days=3650))
    await put(store, task)
    assert await names(store, asked()) == ["now", "earlier"]
