"""The orchestrator waits for an agent whose model or tool takes eight seconds."""

from __future__ import annotations

import asyncio

import pytest

from tests.story.commands import manage_json
from tests.weather.locks import INVOICES, locked, waiting

pytestmark = [pytest.mark.weather, pytest.mark.case(15)]

SECONDS = 8


def test_a_story_with_a_slow_model_comes_out_as_predicted(sleepy_demo):
    run = manage_json(sleepy_demo, "walkthrough")

    assert run["outcome"] == run["predicted"] == "answers"
    # A call and a question, a call and an answer.
    assert run["duration_ms"] >= 4 * SECONDS * 1000


async def test_a_story_with_a_slow_tool_comes_out_as_predicted(demo):
    telling = asyncio.ensure_future(asyncio.to_thread(manage_json, demo, "walkthrough"))
    async with locked(demo, INVOICES):
        await waiting(demo, INVOICES)
        await asyncio.sleep(SECONDS)
        assert not telling.done()

    run = await telling

    assert run["outcome"] == run["predicted"] == "answers"
    assert run["duration_ms"] >= SECONDS * 1000
