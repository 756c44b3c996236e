"""One run before the first: ADK imports some three hundred modules only then."""

from __future__ import annotations

from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from billing_agent.agent.assembly import APP_NAME, build_agent
from billing_agent.agent.scripted_model import ScriptedModel

_USER = "warm-up"


async def warm_up() -> None:
    """Run the agent once, on a scripted model and a session that nobody sees."""
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name=APP_NAME, user_id=_USER)
    agent = build_agent(ScriptedModel(latency=0))
    runner = Runner(app_name=APP_NAME, agent=agent, session_service=sessions)
    hello = types.Content(role="user", parts=[types.Part(text="hello")])
    async for _ in runner.run_async(
        user_id=_USER, session_id=session.id, new_message=hello
    ):
        pass
