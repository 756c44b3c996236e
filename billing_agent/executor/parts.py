"""Message parts to ADK content, and ADK parts to what leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from a2a.types import Message, Part
from google.adk.a2a.converters import part_converter
from google.genai import types
from google.protobuf.json_format import MessageToDict

_TYPE_KEY = "adk_type"
_THOUGHT_KEYS = ("thought", "adk_thought")


class PartNotConvertible(ValueError):
    """A message part that ADK has no form for; ``position`` counts from 0."""

    def __init__(self, position: int) -> None:
        super().__init__(f"message part {position} cannot be converted")
        self.position = position


def whole(value: Any) -> Any:
    """Return JSON data with whole floats as ints: protobuf hands 8812 as 8812.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


def to_content(message: Message) -> types.Content:
    """Convert a message's parts for ADK.

    Raises:
        PartNotConvertible: ADK has no form for a part, or a tool part is malformed.
    """
    return types.Content(
        role="user",
        parts=[
            _to_genai(position, part) for position, part in enumerate(message.parts)
        ],
    )


def _to_genai(position: int, part: Part) -> types.Part:
    if part.WhichOneof("content") == "data" and _TYPE_KEY not in part.metadata:
        return _data_to_genai(part)
    try:
        converted = part_converter.convert_a2a_part_to_genai_part(part)
    except ValueError as error:
        raise PartNotConvertible(position) from error
    if converted is None:
        raise PartNotConvertible(position)
    return converted


def _data_to_genai(part: Part) -> types.Part:
    """Embed plain data as ADK does, with whole numbers kept whole."""
    data = whole(MessageToDict(part.data))
    # Protobuf maps have no order of their own.
    text = json.dumps(data, ensure_ascii=False, sort_keys=True)
    return types.Part(
        inline_data=types.Blob(
            data=part_converter.A2A_DATA_PART_START_TAG
            + text.encode()
            + part_converter.A2A_DATA_PART_END_TAG,
            mime_type=part_converter.A2A_DATA_PART_TEXT_MIME_TYPE,
        ),
        part_metadata=whole(MessageToDict(part.metadata)) or None,
    )


def to_a2a(parts: Iterable[types.Part]) -> list[Part]:
    """Convert ADK parts for the wire; a thought carries both of its markers."""
    leaving: list[Part] = []
    for part in parts:
        converted = part_converter.convert_genai_part_to_a2a_part(part)
        if converted is None:
            continue
        if part.thought:
            for key in _THOUGHT_KEYS:
                converted.metadata[key] = True
        leaving.append(converted)
    return leaving


def is_answer(part: types.Part) -> bool:
    """Return whether a part belongs to an answer: no thought, call or result."""
    return not (part.thought or part.function_call or part.function_response)
