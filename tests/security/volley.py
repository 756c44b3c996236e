"""Many requests at a real demo, as callers that stay below the rate limit."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import httpx
import psycopg

from tests.peer import token

REQUESTS_EACH = 150
SECONDS = 10


class Volley:
    """Sends to every address in turn; a caller that has sent enough is replaced.

    Args:
        demo: the running demo.
        name: how the subjects begin.
        tenant: their tenant.
    """

    def __init__(self, demo: Any, name: str, tenant: str) -> None:
        self.subjects = f"{name}-{secrets.token_hex(4)}"
        self._demo = demo
        self._tenant = tenant
        self._addresses = cycle([demo.router_url, *demo.replicas.values()])
        self._http = httpx.Client(timeout=SECONDS)
        self._bearers = self._fresh_bearers()

    def _fresh_bearers(self) -> Iterator[str]:
        while True:
            subject = f"{self.subjects}-{secrets.token_hex(4)}"
            bearer = asyncio.run(token(self._demo, subject, self._tenant))
            for _ in range(REQUESTS_EACH):
                yield bearer

    def send(self, verb: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """Send one request; a server that hangs or breaks off fails the test."""
        sent = {
            "Authorization": f"Bearer {next(self._bearers)}",
            "A2A-Version": "1.0",
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        address = next(self._addresses) + path
        return self._http.request(verb, address, content=body, headers=sent)

    def left_behind(self) -> list[tuple[Any, ...]]:
        """Return the rows that these callers' requests have left in the database."""
        query = (
            "SELECT 'task', id FROM billing_agent_a2atask WHERE owner LIKE %(who)s"
            " UNION ALL SELECT 'send', send_key FROM billing_agent_a2asend"
            " WHERE owner LIKE %(who)s"
            " UNION ALL SELECT 'session', session_id FROM billing_agent_adksession"
            " WHERE user_id LIKE %(who)s"
            " UNION ALL SELECT 'audit', task_id FROM billing_agent_auditentry"
            " WHERE subject LIKE %(who)s"
        )
        with psycopg.connect(self._demo.environment["DATABASE_URL"]) as connection:
            found = connection.execute(query, {"who": f"%{self.subjects}-%"})
            return found.fetchall()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
