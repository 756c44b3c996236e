from __future__ import annotations

import pytest
from google.adk.memory import InMemoryMemoryService
from google.adk.sessions import InMemorySessionService

from billing_agent.executor.config import ExecutorConfig
from billing_agent.executor.lifecycle import Executor
from billing_agent.executor.registry import RunRegistry
from tests.billing_agent.executor.conftest import (
    APP,
    Collected,
    LocalTurns,
    Yields,
    request,
    says,
)


@pytest.fixture
def memory() -> InMemoryMemoryService:
    return InMemoryMemoryService()


@pytest.fixture
def executor(memory) -> Executor:
    script = [says("thinking aloud", partial=True), says("Compute rose.")]
    return Executor(
        agent=Yields(name="agent", script=script, closed=[]),
        app_name=APP,
        sessions=InMemorySessionService(),
        store="memory",
        registry=RunRegistry(),
        turns=LocalTurns(),
        replica="replica-a",
        config=ExecutorConfig(),
        memory=lambda context: memory,
    )


async def found(memory, context_id, query):
    answer = await memory.search_memory(
        app_name=APP, user_id=f"A2A_USER_{context_id}", query=query
    )
    return [entry.content.parts[0].text for entry in answer.memories]


async def test_what_was_answered_is_remembered_and_nothing_else(executor, memory):
    await executor.execute(request(), Collected())

    assert await found(memory, "ctx-41", "compute thinking") == ["Compute rose."]


async def test_memory_keyed_by_user_ends_with_the_conversation(executor, memory):
    await executor.execute(request(context_id="ctx-41"), Collected())

    assert await found(memory, "ctx-42", "compute") == []
