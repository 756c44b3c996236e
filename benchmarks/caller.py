"""One A2A caller: JSON-RPC and event streams over a kept connection."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from benchmarks.sending import RPC_PATH, headers
from web.demo.switches import URI

Result = dict[str, Any]


class Refused(Exception):
    """The agent answered with a JSON-RPC error; ``code`` as received."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]


class Caller:
    """Speaks to one address as one subject; a context manager.

    Args:
        url: a replica or the router.
        token: the subject's.
    """

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers(token), timeout=60, trust_env=False
        )

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def send(self, text: str, context_id: str, *, now: bool = False) -> Result:
        """Send a message and return its task; ``now``: without waiting for its end."""
        params = message(text, context_id)
        if now:
            params["configuration"] = {"returnImmediately": True}
        task: Result = (await self.call("SendMessage", params))["task"]
        return task

    async def get(self, task_id: str) -> Result:
        """Return a task."""
        return await self.call("GetTask", {"id": task_id})

    async def cancel(self, task_id: str) -> Result:
        """Cancel a task and return it."""
        return await self.call("CancelTask", {"id": task_id})

    async def call(self, method: str, params: dict[str, Any]) -> Result:
        """Call a method and return its result.

        Raises:
            Refused: the agent answered with an error.
            httpx.HTTPError: it did not answer.
        """
        answer = await self._http.post(RPC_PATH, json=_call(method, params))
        return _result(answer.json())

    @asynccontextmanager
    async def stream(
        self, method: str, params: dict[str, Any], **switches: str
    ) -> AsyncIterator[AsyncIterator[tuple[float, Result]]]:
        """Call a streaming method; yield its results, each with when it arrived.

        Args:
            method: ``SendStreamingMessage`` or ``SubscribeToTask``.
            params: its parameters.
            switches: of the demo, for a send.
        """
        extension: dict[str, str] = {}
        if switches:
            params = {**params, "metadata": {URI: switches}}
            extension = {"A2A-Extensions": URI}
        async with aconnect_sse(
            self._http, "POST", RPC_PATH, json=_call(method, params), headers=extension
        ) as source:

            async def results() -> AsyncIterator[tuple[float, Result]]:
                async for event in source.aiter_sse():
                    if event.data:
                        yield time.perf_counter(), _result(json.loads(event.data))

            yield results()


def message(text: str, context_id: str) -> dict[str, Any]:
    """Return the parameters of a send."""
    return {
        "message": {
            "messageId": secrets.token_hex(8),
            "contextId": context_id,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
    }


def state(task: Result) -> str:
    """Return a task's state, as the protocol names it."""
    name: str = task["status"]["state"]
    return name


def _call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _result(answer: dict[str, Any]) -> Result:
    if "error" in answer:
        raise Refused(answer["error"])
    result: Result = answer["result"]
    return result
