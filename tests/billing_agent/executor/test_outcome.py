from __future__ import annotations

import logging
import re

import pytest
from a2a.types import Role

from tests.billing_agent.executor.conftest import request

CANARY = "canary select * from secrets"
BASE = r"^Agent execution failed\. \(error_id: [0-9a-f]{12}\)$"


class Broken(LookupError):
    """What the agent fails with."""


async def failure(make_executor, queue):
    await make_executor([Broken(CANARY)]).execute(request(), queue)
    return queue.events[-1].status.message


@pytest.mark.statement(24)
async def test_a_failure_is_opaque(make_executor, queue, monkeypatch):
    monkeypatch.delenv("ADK_DEBUG_ERRORS", raising=False)

    message = await failure(make_executor, queue)

    assert [re.match(BASE, part.text) is not None for part in message.parts] == [True]
    assert message.role == Role.ROLE_AGENT
    assert (message.task_id, message.context_id) == ("task-1", "ctx-41")
    assert message.message_id
    assert CANARY not in "".join(str(event) for event in queue.events)


@pytest.mark.statement(25)
async def test_a_failure_is_logged_once_with_its_traceback(
    make_executor, queue, caplog
):
    message = await failure(make_executor, queue)

    (row,) = [row for row in caplog.records if row.levelno == logging.ERROR]
    error_id = re.search(r"error_id: (\w+)", message.parts[0].text).group(1)
    assert row.getMessage() == f"Runner failed to execute [error_id={error_id}]"
    assert row.exc_info[0] is Broken
    assert CANARY in caplog.text


@pytest.mark.statement(26)
@pytest.mark.parametrize("value", ["1", "true", "TRUE", "True"])
async def test_debug_errors_adds_class_and_text(
    make_executor, queue, monkeypatch, value
):
    monkeypatch.setenv("ADK_DEBUG_ERRORS", value)

    text = (await failure(make_executor, queue)).parts[0].text

    base, _, detail = text.partition(")")
    assert re.match(BASE, base + ")")
    assert detail == f": {Broken.__module__}.Broken: {CANARY}"


@pytest.mark.statement(26)
@pytest.mark.parametrize("value", ["", "0", "false", "yes", "on", " 1"])
async def test_other_values_of_debug_errors_change_nothing(
    make_executor, queue, monkeypatch, value
):
    monkeypatch.setenv("ADK_DEBUG_ERRORS", value)

    assert re.match(BASE, (await failure(make_executor, queue)).parts[0].text)


@pytest.mark.statement(26)
async def test_debug_errors_is_read_at_each_failure(make_executor, monkeypatch):
    from tests.billing_agent.executor.conftest import Collected

    first, second = Collected(), Collected()
    monkeypatch.setenv("ADK_DEBUG_ERRORS", "1")
    await failure(make_executor, first)
    monkeypatch.delenv("ADK_DEBUG_ERRORS")
    await failure(make_executor, second)

    assert CANARY in first.events[-1].status.message.parts[0].text
    assert CANARY not in second.events[-1].status.message.parts[0].text
