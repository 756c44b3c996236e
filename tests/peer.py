"""An A2A peer for tests: JSON-RPC over HTTP, with a token of the issuer."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from billing_agent.identity.kept import kept
from web.demo.running import RunningDemo
from web.demo.switches import URI

ENDED = {
    f"TASK_STATE_{name}"
    for name in ("COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED")
}


async def token(
    demo: RunningDemo, subject: str, tenant: str = "acme", client: str = "workshop"
) -> str:
    """Return a bearer token for a subject, as one of the issuer's clients."""
    secret = kept(demo.var_dir / f"client-{client}", secrets.token_hex)
    form = {"grant_type": "client_credentials", "tenant": tenant, "subject": subject}
    async with httpx.AsyncClient() as http:
        answer = await http.post(
            f"{demo.web_url}/oauth/token", data=form, auth=(client, secret)
        )
    answer.raise_for_status()
    return answer.json()["access_token"]


class Refused(Exception):
    """A JSON-RPC error; ``code`` and ``message`` as received."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]


class Peer:
    """Speaks to one address as one subject."""

    def __init__(self, url: str, bearer: str) -> None:
        self.url = url
        self.http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {bearer}", "A2A-Version": "1.0"},
            timeout=30,
        )

    async def rpc(self, method: str, params: dict[str, Any], **headers: str) -> Any:
        """Call a method; return its result, raise ``Refused`` on an error."""
        answer = await self.http.post(
            "/a2a/", json=_call(method, params), headers=headers
        )
        body = answer.json()
        if "error" in body:
            raise Refused(body["error"])
        return body["result"]

    async def send(self, text: str, **options: Any) -> dict[str, Any]:
        """Send a message and return the task (see ``message_params``)."""
        params, headers = message_params(text, **options)
        return (await self.rpc("SendMessage", params, **headers))["task"]

    @asynccontextmanager
    async def stream(self, text: str, **options: Any) -> AsyncIterator[Any]:
        """Send a message; yield an iterator over the stream's results."""
        params, headers = message_params(text, **options)
        async with self._events("SendStreamingMessage", params, headers) as events:
            yield events

    @asynccontextmanager
    async def subscribe(self, task_id: str) -> AsyncIterator[Any]:
        """Subscribe to a task; yield an iterator over the stream's results."""
        async with self._events("SubscribeToTask", {"id": task_id}, {}) as events:
            yield events

    async def get(self, task_id: str) -> dict[str, Any]:
        """Return the task."""
        return await self.rpc("GetTask", {"id": task_id})

    async def cancel(self, task_id: str) -> dict[str, Any]:
        """Cancel the task and return it."""
        return await self.rpc("CancelTask", {"id": task_id})

    async def until(self, task_id: str, *states: str, deadline: float = 20) -> Any:
        """Wait until the task is in one of the states (without the prefix)."""
        wanted = {f"TASK_STATE_{state}" for state in states} or ENDED
        async with asyncio.timeout(deadline):
            while True:
                task = await self.get(task_id)
                if task["status"]["state"] in wanted:
                    return task
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def _events(
        self, method: str, params: dict[str, Any], headers: dict[str, str]
    ) -> AsyncIterator[Any]:
        async with aconnect_sse(
            self.http, "POST", "/a2a/", json=_call(method, params), headers=headers
        ) as source:

            async def results() -> AsyncIterator[dict[str, Any]]:
                if "text/event-stream" not in source.response.headers["content-type"]:
                    await source.response.aread()
                    raise Refused(source.response.json()["error"])
                async for event in source.aiter_sse():
                    body = json.loads(event.data)
                    if "error" in body:
                        raise Refused(body["error"])
                    yield body["result"]

            yield results()


def message_params(
    text: str,
    *,
    context_id: str | None = None,
    task_id: str | None = None,
    message_id: str | None = None,
    now: bool = False,
    metadata: dict[str, Any] | None = None,
    parts: list[dict[str, Any]] | None = None,
    **switches: str,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return parameters and headers of a send; keywords left over are switches."""
    message: dict[str, Any] = {
        "messageId": message_id or secrets.token_hex(8),
        "role": "ROLE_USER",
        "parts": parts if parts is not None else [{"text": text}],
    }
    if context_id is not None:
        message["contextId"] = context_id
    if task_id is not None:
        message["taskId"] = task_id
    params: dict[str, Any] = {"message": message, "metadata": dict(metadata or {})}
    if now:
        params["configuration"] = {"returnImmediately": True}
    headers: dict[str, str] = {}
    affinity = switches.pop("affinity", None)
    if affinity:
        headers["X-Affinity"] = affinity
    if switches:
        params["metadata"][URI] = switches
        headers["A2A-Extensions"] = URI
    return params, headers


def _call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def state(task: dict[str, Any]) -> str:
    """Return a task's state without its prefix."""
    return task["status"]["state"].removeprefix("TASK_STATE_")


def texts(task: dict[str, Any]) -> list[str]:
    """Return the texts of a task's artifacts, in order."""
    return [
        part["text"]
        for artifact in task.get("artifacts", [])
        for part in artifact["parts"]
        if "text" in part
    ]
