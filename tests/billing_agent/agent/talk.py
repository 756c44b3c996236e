"""A conversation with the billing agent through a real ADK runner."""

from __future__ import annotations

from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from billing_agent.agent.assembly import APP_NAME, build_agent

USER = "A2A_USER_ctx-41"


class Talk:
    """One caller's turns in one session store.

    Args:
        tenant: what the filter stamped; None leaves the metadata out.
        model: the model; the scripted one when left out.
        streaming: whether the model is asked to stream.
    """

    def __init__(self, tenant="acme", *, model=None, streaming=False, memory=None):
        self.sessions = InMemorySessionService()
        self._runner = Runner(
            app_name=APP_NAME,
            agent=build_agent(model),
            session_service=self.sessions,
            memory_service=memory,
        )
        stamped = {"a2a_metadata": {"x-verified-tenant": tenant}} if tenant else None
        mode = StreamingMode.SSE if streaming else StreamingMode.NONE
        self._config = RunConfig(custom_metadata=stamped, streaming_mode=mode)

    async def say(self, *parts, session="ctx-41"):
        """Send one message (text, or parts as they are); return the run's events."""
        await self.session(session)
        message = [
            types.Part(text=part) if isinstance(part, str) else part for part in parts
        ]
        stream = self._runner.run_async(
            user_id=USER,
            session_id=session,
            new_message=types.Content(role="user", parts=message),
            run_config=self._config,
        )
        return [event async for event in stream]

    async def session(self, session="ctx-41"):
        """Return a session, created if it is new."""
        key = {"app_name": APP_NAME, "user_id": USER, "session_id": session}
        return await self.sessions.get_session(**key) or (
            await self.sessions.create_session(**key)
        )


def text(event):
    """Return an event's words."""
    return "".join(part.text for part in event.content.parts if part.text)


def calls(events):
    """Return the tool calls of events as (name, arguments)."""
    return [
        (call.name, call.args)
        for event in events
        for call in event.get_function_calls()
    ]


def question(events):
    """Return what the run asks at its end."""
    (asked,) = calls(events[-1:])
    assert asked[0] == "ask_user"
    assert events[-1].long_running_tool_ids
    return asked[1]["question"]


def answer_to(events, words):
    """Return words as the response to the question a run ended with."""
    (call,) = events[-1].get_function_calls()
    return types.Part(
        function_response=types.FunctionResponse(
            id=call.id, name=call.name, response={"answer": words}
        )
    )
