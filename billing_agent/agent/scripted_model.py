"""A model without a key or a network: ADK's interface over a script."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable

from django.conf import settings
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from billing_agent.agent.conversation import view
from billing_agent.agent.script import Move, decide

CHARACTERS_A_TOKEN = 4


class ScriptedModel(BaseLlm):
    """Answers from the contents of the request and from nothing else.

    Args:
        model: the name it goes by.
        latency: seconds each call takes; the setting ``SCRIPTED_MODEL_LATENCY``
            when left out.
    """

    model: str = "scripted"
    latency: float | None = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the reply; when streaming, its words first, as partial responses."""
        move = decide(view(llm_request.contents))
        chunks = re.findall(r"\s*\S+\s*", move.text) if stream else []
        pause = self._seconds() / max(len(chunks), 1)
        for chunk in chunks:
            await asyncio.sleep(pause)
            words = types.Content(role="model", parts=[types.Part(text=chunk)])
            yield LlmResponse(content=words, partial=True)
        if not chunks:
            await asyncio.sleep(pause)
        content = _content(move)
        yield LlmResponse(
            content=content,
            partial=False,
            finish_reason=types.FinishReason.STOP,
            model_version=self.model,
            usage_metadata=_usage(llm_request, content),
        )

    def _seconds(self) -> float:
        if self.latency is not None:
            return self.latency
        seconds: float = settings.SCRIPTED_MODEL_LATENCY
        return seconds


def _content(move: Move) -> types.Content:
    parts = [types.Part(text=move.text)] if move.text else []
    if move.tool:
        call = types.FunctionCall(name=move.tool, args=move.arguments)
        parts.append(types.Part(function_call=call))
    return types.Content(role="model", parts=parts)


def _usage(
    request: LlmRequest, reply: types.Content
) -> types.GenerateContentResponseUsageMetadata:
    instruction = str(request.config.system_instruction or "")
    prompt = _tokens(request.contents) + len(instruction) // CHARACTERS_A_TOKEN
    answer = _tokens([reply])
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=answer,
        total_token_count=prompt + answer,
    )


def _tokens(contents: Iterable[types.Content]) -> int:
    """Estimate tokens the usual way, four characters each, at least one a part."""
    return sum(
        max(len(_visible(part)) // CHARACTERS_A_TOKEN, 1)
        for content in contents
        for part in content.parts or []
    )


def _visible(part: types.Part) -> str:
    if part.function_call:
        return f"{part.function_call.name}{part.function_call.args}"
    if part.function_response:
        return f"{part.function_response.name}{part.function_response.response}"
    return part.text or ""
