"""Assembly: the same agent around the script or around any model ADK knows."""

from __future__ import annotations

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from billing_agent.agent.assembly import APP_NAME, build_agent, resolve_model
from billing_agent.agent.scripted_model import ScriptedModel
from tests.billing_agent.agent.talk import Talk, calls, text

TOOLS = {
    "get_invoice",
    "list_invoices",
    "compare_line_item",
    "audit_invoice",
    "ask_user",
    "remember_preference",
    "recall_preferences",
    "recall",
}


class FakeModel(BaseLlm):
    """A model out of ADK's registry: looks up 8812, then reports the total."""

    @classmethod
    def supported_models(cls):
        return [r"fake-billing-\d+"]

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(
                text=f"{self.model}: {last.function_response.response['total']}"
            )
        else:
            assert set(llm_request.tools_dict) == TOOLS
            call = types.FunctionCall(name="get_invoice", args={"number": 8812.0})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


@pytest.fixture
def registered(monkeypatch):
    from google.adk.models import registry

    monkeypatch.setattr(
        registry, "_llm_registry_dict", dict(registry._llm_registry_dict)
    )
    LLMRegistry.register(FakeModel)
    yield
    LLMRegistry.resolve.cache_clear()


def test_the_script_is_the_default():
    assert isinstance(build_agent().model, ScriptedModel)
    assert isinstance(resolve_model("scripted"), ScriptedModel)


def test_a_name_is_resolved_by_adks_registry(registered):
    model = resolve_model("fake-billing-1")
    assert isinstance(model, FakeModel)
    assert model.model == "fake-billing-1"


def test_an_unknown_name_is_refused_by_name():
    with pytest.raises(ValueError, match="no-such-model"):
        resolve_model("no-such-model")


async def test_the_setting_swaps_in_a_model_with_the_same_tools(
    seeded, registered, settings
):
    settings.BILLING_MODEL = "fake-billing-2"
    events = await Talk().say("How much?")
    assert text(events[-1]) == "fake-billing-2: 4310.20"
    assert calls(events)[0][0] == "get_invoice"


def test_the_agent_is_named_like_the_app():
    agent = build_agent()
    assert agent.name == APP_NAME == "billing_agent"


async def test_ask_user_is_the_only_long_running_tool():
    tools = await build_agent().canonical_tools()
    assert {tool.name for tool in tools} == TOOLS
    assert [tool.name for tool in tools if tool.is_long_running] == ["ask_user"]


async def test_no_tool_asks_the_model_for_a_tenant():
    for tool in await build_agent().canonical_tools():
        declaration = tool._get_declaration()
        assert declaration.description
        parameters = (declaration.parameters_json_schema or {}).get("properties", {})
        assert "tenant" not in parameters
        assert "tool_context" not in parameters


async def test_each_model_call_gets_a_declaration_of_its_own_as_adk_makes_it():
    for tool in await build_agent().canonical_tools():
        stock = LongRunningFunctionTool if tool.is_long_running else FunctionTool
        declaration = tool._get_declaration()
        assert declaration == stock(tool.func)._get_declaration()
        declaration.name = declaration.description = "changed by ADK"
        assert tool._get_declaration() == stock(tool.func)._get_declaration()
