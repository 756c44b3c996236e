"""Contexts looked up in the task store."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from billing_agent.models import A2ATask
from billing_agent.router.contexts import TaskContexts
from tests.ports import free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(transactional_db):
    A2ATask.objects.create(
        id="t",
        owner="someone",
        context_id="ctx-41",
        state="TASK_STATE_WORKING",
        status_at=timezone.now(),
        version=1,
        body=b"",
        updated_at=timezone.now(),
    )


@pytest.fixture
def conninfo(transactional_db):
    named = connection.settings_dict
    return make_conninfo(
        dbname=named["NAME"],
        host=named["HOST"],
        port=named["PORT"] or None,
        user=named["USER"],
        password=named["PASSWORD"],
    )


@pytest.fixture
async def contexts(conninfo):
    contexts = TaskContexts(conninfo, kept=1)
    await contexts.open()
    # A connection still being made when the pool closes would outlive the test.
    await contexts._pool.wait(timeout=30)
    yield contexts
    await contexts.aclose()


async def write(conninfo, sql):
    async with await psycopg.AsyncConnection.connect(conninfo) as opened:
        await opened.execute(sql)


async def test_context_of_a_task_is_found(task, contexts):
    assert await contexts("someone", "t") == "ctx-41"


@pytest.mark.parametrize(
    ("subject", "task_id"), [("someone else", "t"), ("someone", "unknown"), ("", "")]
)
async def test_task_of_nobody_or_another_has_none(task, contexts, subject, task_id):
    assert await contexts(subject, task_id) == ""


async def test_answer_is_remembered(task, contexts, conninfo):
    await contexts("someone", "t")
    await write(conninfo, "DELETE FROM billing_agent_a2atask")
    assert await contexts("someone", "t") == "ctx-41"


async def test_task_that_was_not_there_is_asked_for_again(task, contexts, conninfo):
    assert await contexts("someone", "later") == ""
    await write(conninfo, "UPDATE billing_agent_a2atask SET id = 'later'")
    assert await contexts("someone", "later") == "ctx-41"


async def test_nothing_can_be_written(contexts):
    async with contexts._pool.connection() as opened:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await opened.execute("DELETE FROM billing_agent_a2atask")


async def test_database_that_is_down_finds_nothing_and_says_so(caplog):
    conninfo = f"postgresql://127.0.0.1:{free_port()}/none"
    contexts = TaskContexts(conninfo, wait=0.1)
    await contexts.open()
    try:
        assert await contexts("someone", "t") == ""
    finally:
        await contexts.aclose()
    assert "cannot be looked up" in caplog.text
