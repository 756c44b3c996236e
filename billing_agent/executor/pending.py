"""Tool calls that wait for an answer: the question asked, and its delivery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session
from google.genai import types


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call of a session that has no response yet."""

    call: types.FunctionCall
    invocation_id: str
    long_running: bool


def open_calls(events: Iterable[Event]) -> list[OpenCall]:
    """Return the calls without a response, oldest first."""
    waiting: dict[str | None, OpenCall] = {}
    for event in events:
        for call in event.get_function_calls():
            asked = call.id in (event.long_running_tool_ids or ())
            waiting[call.id] = OpenCall(call, event.invocation_id, asked)
        for response in event.get_function_responses():
            waiting.pop(response.id, None)
    return list(waiting.values())


def question(event: Event) -> str | None:
    """Return the question an event asks by a long-running call, if it does.

    Of several it is the last, which is the one that an answer goes to.
    """
    if event.partial:
        return None
    for call in reversed(event.get_function_calls()):
        if call.id in (event.long_running_tool_ids or ()):
            asked = (call.args or {}).get("question")
            return str(asked) if asked else "Input required."
    return None


def answer(waiting: OpenCall, content: types.Content) -> types.Content:
    """Return a user's words as the response to the call that asked for them.

    ADK refuses a message that mixes a function response with text, so the text goes
    into the response; other parts stay beside it. A peer that sends a function
    response itself cannot know the call's id, which never leaves: it is set here.
    """
    parts = content.parts or []
    text = "\n".join(part.text for part in parts if part.text)
    body: dict[str, Any] = {"answer": text} if text else {}
    others: list[types.Part] = []
    for part in parts:
        if part.function_response:
            body |= part.function_response.response or {}
        elif not part.text:
            others.append(part)
    return types.Content(role="user", parts=[_response(waiting.call, body), *others])


async def close(
    service: BaseSessionService, session: Session, calls: Iterable[OpenCall]
) -> None:
    """Answer calls that nobody will answer any more, so that none dangles.

    A model refuses a history in which a call has no response. Done at the start of
    the next turn, it also covers a replica that was killed.
    """
    for waiting in calls:
        event = Event(
            author="user",
            invocation_id=waiting.invocation_id,
            content=types.Content(
                role="user", parts=[_response(waiting.call, {"status": "cancelled"})]
            ),
        )
        await service.append_event(session, event)


def _response(call: types.FunctionCall, body: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(
            id=call.id, name=call.name, response=body
        )
    )
