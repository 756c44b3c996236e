"""What happens around each model and tool call: facts, data parts in and out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.adk.a2a.converters import part_converter
from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from billing_agent import facts
from billing_agent.agent.tenant import tenant_or_blank

COMPARE = "compare_line_item"
_START = part_converter.A2A_DATA_PART_START_TAG
_END = part_converter.A2A_DATA_PART_END_TAG
_LINE_WIDTH = 100


async def announce_model(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> None:
    """Announce the model call that is about to happen, if somebody listens."""
    if not facts.announced.receivers:
        return
    session = callback_context.session
    calls_before = sum(_is_reply(event) for event in this_turn(session.events))
    await facts.announce(
        facts.ModelCalled(
            call=calls_before + 1,
            session_id=session.id,
            events_seen=len(session.events),
            seen=tuple(line_of(event) for event in session.events),
        )
    )


async def show_data_as_text(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> None:
    """Show a caller's data parts to the model as JSON text, hide the agent's own.

    ADK carries them as inline blobs, which some models refuse and wedge the session
    for good. What the agent's own part says is in the tool's result as well.
    """
    for content in llm_request.contents:
        if any(_data_of(part) is not None for part in content.parts or ()):
            content.parts = [
                types.Part(text=data) if (data := _data_of(part)) else part
                for part in content.parts or ()
                if content.role == "user" or _data_of(part) is None
            ]


async def add_comparison(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> LlmResponse | None:
    """Add this turn's last comparison to its final response, as a data part."""
    content = llm_response.content
    if llm_response.partial or not content or not content.parts:
        return None
    if any(part.function_call for part in content.parts):
        return None
    comparison = last_comparison(this_turn(callback_context.session.events))
    if comparison is None:
        return None
    parts = [*content.parts, data_part(comparison)]
    answer = types.Content(role=content.role, parts=parts)
    return llm_response.model_copy(update={"content": answer})


async def announce_tool(
    tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
) -> None:
    """Announce the tool that is about to run."""
    await facts.announce(
        facts.ToolCalled(tool.name, dict(args), tenant_or_blank(tool_context))
    )


def this_turn(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events since the caller's latest message.

    The invocation id will not do: a question's answer resumes the invocation that
    asked it.
    """
    for position in range(len(events) - 1, -1, -1):
        if events[position].author == "user":
            return events[position + 1 :]
    return events


def last_comparison(events: Sequence[Event]) -> dict[str, Any] | None:
    """Return what ``compare_line_item`` answered last, errors left out."""
    for event in reversed(events):
        for response in reversed(event.get_function_responses()):
            answer = response.response or {}
            if response.name == COMPARE and "error" not in answer:
                return answer
    return None


def data_part(data: dict[str, Any]) -> types.Part:
    """Return data as the blob that ADK turns into an A2A data part."""
    text = json.dumps(data, ensure_ascii=False)
    return types.Part(
        inline_data=types.Blob(
            data=_START + text.encode() + _END,
            mime_type=part_converter.A2A_DATA_PART_TEXT_MIME_TYPE,
        )
    )


def line_of(event: Event) -> str:
    """Return one short line for an event; words beside a tool call stay inside."""
    texts, tools = [], []
    for part in (event.content and event.content.parts) or ():
        if part.function_call:
            tools.append(f"calls {part.function_call.name}")
        elif part.function_response:
            tools.append(_answer_of(part.function_response))
        elif part.text:
            texts.append(part.text)
    said = "; ".join(words[:_LINE_WIDTH] for words in tools or texts)
    line = " ".join(f"{event.author}: {said}".split())
    return line if len(line) < _LINE_WIDTH else f"{line[: _LINE_WIDTH - 1]}…"


def _answer_of(response: types.FunctionResponse) -> str:
    said = (response.response or {}).get("answer")
    return said if isinstance(said, str) else f"{response.name} answers"


def _is_reply(event: Event) -> bool:
    return bool(event.content and event.content.role == "model")


def _data_of(part: types.Part) -> str | None:
    blob = part.inline_data
    if blob is None or blob.data is None or not blob.data.startswith(_START):
        return None
    return blob.data.removeprefix(_START).removesuffix(_END).decode()
