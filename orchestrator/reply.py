"""A function response as a follow-up to what an agent asked."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from a2a.types import Message, Part, Role, TaskStatusUpdateEvent

# How ADK marks a data part that is a function response, in both of its languages.
TYPE_KEY = "adk_type"
FUNCTION_RESPONSE = "function_response"


def function_response(
    received: TaskStatusUpdateEvent, name: str, response: dict[str, Any]
) -> Message:
    """Return the message that answers a received question with a function response.

    It carries the ids of the event it answers: without them the agent would begin a
    new task in a new context (A2A 1.0, 3.4.3). The call's own id is not on the wire,
    so it is not in the message either.

    Args:
        received: the event that asked for input.
        name: the function that asks, ``ask_user`` for the billing agent.
        response: what it returns; JSON values only.
    """
    part = Part()
    part.data.struct_value.update({"name": name, "response": response})
    part.metadata[TYPE_KEY] = FUNCTION_RESPONSE
    return Message(
        message_id=str(uuid4()),
        role=Role.ROLE_USER,
        task_id=received.task_id,
        context_id=received.context_id,
        parts=[part],
    )
