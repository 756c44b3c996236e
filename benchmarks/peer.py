"""The peer: ADK's own A2A server on uvicorn, over the same scripted agent.

Run as a script. ``--durable`` gives it ADK's and a2a-sdk's own database stores on the
PostgreSQL of ``DATABASE_URL``, as their documentation sets them up; without it
everything but the invoices is in memory. It verifies nobody: the caller's metadata
name the tenant.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import django
import uvicorn
from a2a.server.tasks import DatabaseTaskStore
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.auth.credential_service.in_memory_credential_service import (
    InMemoryCredentialService,
)
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

HOST = "127.0.0.1"


def in_memory(agent: LlmAgent, port: int) -> Starlette:
    """Return the server as ``to_a2a`` makes it by default."""
    return to_a2a(agent, host=HOST, port=port)


def durable(agent: LlmAgent, port: int, database: str) -> Starlette:
    """Return the same with both stores in PostgreSQL."""
    url = make_url(database).set(drivername="postgresql+psycopg")
    sessions = DatabaseSessionService(url.render_as_string(hide_password=False))
    engine = create_async_engine(url)
    tasks = DatabaseTaskStore(engine)
    # What to_a2a takes when it is not told, but for the sessions.
    runner = Runner(
        app_name=agent.name,
        agent=agent,
        session_service=sessions,
        artifact_service=InMemoryArtifactService(),
        memory_service=InMemoryMemoryService(),
        credential_service=InMemoryCredentialService(),
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # By themselves they do it at the first requests, which race for it.
        await tasks.initialize()
        await sessions.prepare_tables()
        yield
        await sessions.close()
        await engine.dispose()

    return to_a2a(
        agent,
        host=HOST,
        port=port,
        runner=runner,
        task_store=tasks,
        lifespan=lifespan,
    )


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--durable", action="store_true")
    chosen = parser.parse_args()
    from billing_agent.agent.assembly import build_agent

    agent = build_agent()
    if chosen.durable:
        application = durable(agent, chosen.port, os.environ["DATABASE_URL"])
    else:
        application = in_memory(agent, chosen.port)
    uvicorn.run(application, host=HOST, port=chosen.port, log_level="warning")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
    django.setup()
    main()
