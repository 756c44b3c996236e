"""Puts the agent together: instruction, tools, callbacks, and a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from django.conf import settings
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from billing_agent.agent import callbacks, tools
from billing_agent.agent.scripted_model import ScriptedModel

APP_NAME = "billing_agent"

INSTRUCTION = """\
You answer questions of a customer about the customer's own invoices.
Take every figure from a tool result of this conversation; never guess one.
To explain why an invoice changed, get the invoice, then compare one line item. When
several lines moved and the customer named none, call ask_user with one short question
and stop. When no invoice was named, ask which one.
To audit several invoices, call audit_invoice once for each, going back by `previous`.
Quote amounts with two decimals. Keep answers to a few sentences.
A tool result with `error` means there is no such thing: say so, do not try others."""

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    tools.get_invoice,
    tools.list_invoices,
    tools.compare_line_item,
    tools.audit_invoice,
    tools.remember_preference,
    tools.recall_preferences,
    tools.recall,
)


class DescribedOnce(FunctionTool):
    """A function tool whose declaration is made once.

    ADK wraps a plain function anew for every model call, and copies a declaration to
    its depth; nothing changes what is inside one, so the outside is copied here.
    """

    @cached_property
    def _declaration(self) -> types.FunctionDeclaration | None:
        return super()._get_declaration()

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        declaration = self._declaration
        return declaration and declaration.model_copy()


class LongRunning(DescribedOnce, LongRunningFunctionTool):
    """The same for a tool whose answer comes later."""


def resolve_model(name: str) -> BaseLlm:
    """Return the model a name stands for: ``scripted``, or one of ADK's.

    Raises:
        ValueError: ADK's registry does not know the name; the message names it.
    """
    return ScriptedModel() if name == "scripted" else LLMRegistry.new_llm(name)


def build_agent(model: BaseLlm | None = None) -> LlmAgent:
    """Return the billing agent.

    Args:
        model: what it thinks with; the setting ``BILLING_MODEL`` when left out.
    """
    return LlmAgent(
        name=APP_NAME,
        description="Explains, lists, compares and audits a customer's invoices.",
        model=model or resolve_model(settings.BILLING_MODEL),
        instruction=INSTRUCTION,
        tools=[
            *map(DescribedOnce, _FUNCTIONS),
            LongRunning(tools.ask_user),
        ],
        before_model_callback=[callbacks.announce_model, callbacks.show_data_as_text],
        after_model_callback=callbacks.add_comparison,
        before_tool_callback=callbacks.announce_tool,
    )
