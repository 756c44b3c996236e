"""The embedded router: passes each request on to the replica it belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from billing_agent.errors import RequestRefused
from billing_agent.facts import ReplicaChosen, announce
from billing_agent.refusals import Later, id_of, refuse
from billing_agent.router import upstream
from billing_agent.router.errand import errand_of
from billing_agent.router.routing import Choice, Turns, choose

if TYPE_CHECKING:
    import httpx
    from starlette.types import Receive, Scope, Send

    from billing_agent.router.errand import Errand

TaskContexts = Callable[[str, str], Awaitable[str]]


async def no_contexts(subject: str, task_id: str) -> str:
    """Find no task's context, for a router without a task store."""
    return ""


class Router:
    """An ASGI application in front of the replicas, itself behind the filter.

    ``X-Affinity: off`` takes the replicas turn by turn; without it a conversation
    stays at the replica with the highest digest. ``X-A2A-Context`` names the context
    of a request that can only name a task.

    Args:
        replicas: addresses by name, in routing order.
        task_contexts: finds the context of a subject's task, empty when there is
            none; nothing is found when left out.
        transport: how replicas are reached; httpx's own when left out.
    """

    def __init__(
        self,
        replicas: Mapping[str, str],
        *,
        task_contexts: TaskContexts = no_contexts,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._replicas = dict(replicas)
        self._names = list(replicas)
        self._task_contexts = task_contexts
        self._client = upstream.new_client(transport)
        self._turns = Turns()
        self._draining = False
        self._open: set[asyncio.Future[None]] = set()

    async def drain(self, grace: float) -> None:
        """Say that the router is about to stop, and let open requests end.

        Args:
            grace: seconds they get; then their connections are closed.
        """
        self._draining = True
        if self._open:
            await asyncio.wait(set(self._open), timeout=grace)
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for the router itself, or pass the request on."""
        if scope["path"] == "/healthz":
            await _say(send, 200, {"status": "ok"})
        elif scope["path"] == "/readyz":
            await self._say_ready(send)
        else:
            body = await _whole(receive)
            await self._while_there(receive, self._serve(scope, body, send))

    async def _say_ready(self, send: Send) -> None:
        up = await upstream.ready(self._client, self._replicas)
        ready = up and not self._draining
        await _say(send, 200 if ready else 503, {"replicas": up})

    async def _while_there(
        self, receive: Receive, work: Coroutine[Any, Any, None]
    ) -> None:
        """Do the work; when the client goes, drop it and the replica's connection.

        So the replica hears of it at once; the task it runs goes on there.
        """
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(_left(receive))
        self._open.add(working)
        working.add_done_callback(self._open.discard)
        try:
            await asyncio.wait({working, leaving}, return_when=FIRST_COMPLETED)
        finally:
            leaving.cancel()
            working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working

    async def _serve(self, scope: Scope, body: bytes, send: Send) -> None:
        try:
            await self._pass_on(await errand_of(scope, body, self._task_contexts), send)
        except RequestRefused as error:
            await refuse(scope, send, error, id_of(scope.get("a2a.body")))

    async def _pass_on(self, errand: Errand, send: Send) -> None:
        """Try one replica after the other until one takes the request."""
        wanted = self._wanted(errand)
        down: set[str] = set()
        while choice := self._choose(errand, wanted, down):
            if errand.call.kind == "send":
                self._turns.took(errand.conversation, choice.replica)
            await _announce(errand, choice)
            try:
                address = self._replicas[choice.replica]
                await upstream.exchange(self._client, address, errand, choice, send)
            except upstream.ReplicaDown:
                down.add(choice.replica)
            else:
                return
        raise Later("no replica is up")

    def _wanted(self, errand: Errand) -> str | None:
        """Return the replica whose turn it is, when the digests do not decide."""
        if errand.affinity or not errand.conversation.context_id:
            return None
        if errand.call.kind == "send":
            return self._turns.next(errand.conversation, self._names)
        return self._turns.last(errand.conversation)

    def _choose(
        self, errand: Errand, wanted: str | None, down: set[str]
    ) -> Choice | None:
        context_id = errand.conversation.context_id
        return choose(context_id, self._names, wanted=wanted, down=down)


async def _announce(errand: Errand, choice: Choice) -> None:
    if errand.call.kind != "other":
        fact = ReplicaChosen(
            choice.replica, choice.reason, errand.affinity, choice.scores
        )
        await announce(fact, errand.origin)


async def _say(send: Send, status: int, document: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    start = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})


async def _whole(receive: Receive) -> bytes:
    """Return the body, which the filter has bounded."""
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
