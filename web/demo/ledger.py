"""What each session store really holds for the caller, read from the store."""

from __future__ import annotations

from collections.abc import Mapping

from google.adk.sessions import BaseSessionService
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from billing_agent.agent.assembly import APP_NAME
from billing_agent.facts import Store
from billing_agent.stores.scope import ScopedSessionService

PATH = "/demo/ledger"


def ledger_route(replica: str, stores: Mapping[Store, BaseSessionService]) -> Route:
    """Return ``GET /demo/ledger``: the sessions of the token's subject, by store.

    Args:
        replica: the name the answer carries.
        stores: session services of this replica by store name.
    """

    async def ledger(request: Request) -> JSONResponse:
        subject = request.user.display_name
        held = [
            {"store": name, "sessions": await _held(service, subject)}
            for name, service in stores.items()
        ]
        return JSONResponse({"replica": replica, "stores": held})

    return Route(PATH, ledger, methods=["GET"])


async def _held(service: BaseSessionService, subject: str) -> list[dict[str, object]]:
    scoped = ScopedSessionService(service, subject)
    listed = await scoped.list_sessions(app_name=APP_NAME)
    rows: list[dict[str, object]] = []
    for user in dict.fromkeys(session.user_id for session in listed.sessions):
        counts = await scoped.held(APP_NAME, user)
        rows += [
            {"user": user, "session_id": session_id, "events": events}
            for session_id, events in counts
        ]
    return rows
