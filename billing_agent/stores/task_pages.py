"""Pages of a caller's tasks: filters, order and page tokens of ListTasks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from a2a.types import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
)

from billing_agent.stores import task_sql as sql
from billing_agent.stores.pool import Pool, rows

EPOCH = datetime.fromtimestamp(0, UTC)


async def page_of_tasks(
    pool: Pool, params: ListTasksRequest, owner: str
) -> ListTasksResponse:
    """Return one page of the owner's tasks, the latest status first.

    A token names the last task of its page, so it stays good when that task changes
    (A2A 1.0, section 3.1.4).

    Raises:
        InvalidParamsError: the page token is not one of ours, or no such state exists.
    """
    size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
    since = params.status_timestamp_after
    parameters = {
        "owner": owner,
        "context": params.context_id or None,
        "state": _state(params.status) if params.status else None,
        "since": since.ToDatetime(UTC)
        if params.HasField("status_timestamp_after")
        else None,
        "limit": size + 1,
        **_position(params.page_token),
    }
    found = await rows(pool, sql.LIST, parameters)
    tasks = [row[1:] for row in found if row[1] is not None]
    page = tasks[:size]
    return ListTasksResponse(
        tasks=[Task.FromString(body) for _, _, body in page],
        total_size=found[0][0],
        page_size=size,
        next_page_token=_token(page[-1]) if len(tasks) > size else None,
    )


def _state(number: TaskState) -> str:
    try:
        name: str = TaskState.Name(number)
        return name
    except ValueError:
        raise InvalidParamsError(message=f"No task state {number}") from None


def _token(row: tuple[Any, ...]) -> str:
    task_id, at, _ = row
    microseconds = (at - EPOCH) // timedelta(microseconds=1)
    return encode_list_tasks_cursor(ListTasksCursor(microseconds * 1000, task_id))


def _position(token: str) -> dict[str, Any]:
    if not token:
        return {"at": None, "after": None}
    try:
        cursor = decode_list_tasks_cursor(token)
        if cursor is None or cursor.timestamp_ns is None or "\0" in cursor.task_id:
            raise ValueError(token)
        cursor.task_id.encode()
        at = EPOCH + timedelta(microseconds=cursor.timestamp_ns // 1000)
    except (ValueError, OverflowError, RecursionError):
        raise InvalidParamsError(message="Invalid page token") from None
    return {"at": at, "after": cursor.task_id}
