"""What the tables hold about tasks and conversations, as rules ask for it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from a2a.types import StreamResponse, TaskState

from billing_agent.executor.outcome import TERMINAL
from billing_agent.models.sessions import SEPARATOR
from tests.billing_agent.contract.watch import rows


async def session_events(demo: Any, subject: str, context_id: str) -> list[dict]:
    """Return the events of a conversation's session, in order.

    ``subject`` may leave out what the issuer puts before it.
    """
    found = await rows(
        demo,
        "SELECT event.body FROM billing_agent_adkevent event"
        " JOIN billing_agent_adksession session ON session.id = event.session_id"
        " WHERE session.user_id LIKE %s AND session.session_id = %s"
        " ORDER BY event.seq",
        f"%{subject}{SEPARATOR}%",
        context_id,
    )
    return [json.loads(body) for (body,) in found]


def said(events: list[dict]) -> str:
    """Return everything a session's users said, answers to questions included."""
    return "\n".join(
        json.dumps(event["content"], ensure_ascii=False)
        for event in events
        if event.get("author") == "user"
    )


def interleaved(events: list[dict]) -> bool:
    """Return whether the events of two runs mix.

    The answer that closes an abandoned call belongs to that call's run.
    """
    runs = [event["invocation_id"] for event in events if not _closes(event)]
    changes = sum(one != other for one, other in pairwise(runs))
    return bool(runs) and changes + 1 > len(set(runs))


def _closes(event: dict) -> bool:
    return event.get("author") == "user" and '"cancelled"' in json.dumps(event)


def dangling(events: list[dict]) -> set[str]:
    """Return the ids of calls without a response."""
    calls: set[str] = set()
    responses: set[str] = set()
    for event in events:
        for part in event["content"]["parts"]:
            calls |= {part["function_call"]["id"]} if "function_call" in part else set()
            if "function_response" in part:
                responses.add(part["function_response"]["id"])
    return calls - responses


async def states(demo: Any, task_id: str) -> list[str]:
    """Return the states of a task's events, in the order they were stored."""
    found = await rows(
        demo,
        "SELECT body FROM billing_agent_a2ataskevent WHERE task_id = %s"
        " ORDER BY version",
        task_id,
    )
    events = [StreamResponse.FromString(body) for (body,) in found]
    return [_state(event) for event in events]


def _state(event: StreamResponse) -> str:
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        return "ARTIFACT"
    value = getattr(event, kind).status.state
    return TaskState.Name(value).removeprefix("TASK_STATE_")


ENDS = {TaskState.Name(value).removeprefix("TASK_STATE_") for value in TERMINAL}
