"""a2a-sdk's JSON-RPC transport, reading event streams as they are meant.

The SDK's own reader splits lines at U+2028 and the like, which are legal inside an
event; httpx-sse splits at CR and LF only. This transport also lets its caller see
what goes over the wire.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types import StreamResponse
from a2a.utils.errors import A2AError
from a2a.utils.proto_utils import parse_lenient
from google.protobuf.json_format import MessageToDict, ParseError
from httpx_sse import EventSource, ServerSentEvent

from orchestrator.errors import (
    AgentRefused,
    AgentSilent,
    AgentUnreachable,
    OrchestratorError,
    StreamBroken,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from a2a.client.client import ClientCallContext
    from a2a.types import SendMessageRequest

EVENT_STREAM = "text/event-stream"
EVENT_SECONDS = 60.0
_WIRE = "orchestrator.wire"
# What a router says of the replicas behind it (RFC 9110, section 15.6).
_GATEWAY: dict[int, type[OrchestratorError]] = {
    502: AgentUnreachable,
    503: AgentUnreachable,
    504: AgentSilent,
}


@dataclass(slots=True)
class Wire:
    """What one call put on the wire and is getting from it.

    Args:
        sending: awaited with the request before it leaves.
        replica: ``X-Replica`` of the answer.
        size: bytes of the newest event's payload.
        response: the newest event's JSON-RPC result.
    """

    sending: Callable[[httpx.Request, dict[str, Any]], Awaitable[None]]
    replica: str = ""
    size: int = 0
    response: dict[str, Any] | None = None

    def attach(self, context: ClientCallContext) -> None:
        """Let the transport find this object in the call's context."""
        context.state[_WIRE] = self


class WireTransport(JsonRpcTransport):
    """Streams a message's answer; every failure is an ``OrchestratorError``.

    An answer must say something at least every ``EVENT_SECONDS`` seconds: comment
    lines keep a connection open, they are no sign of life of the agent.
    """

    async def send_message_streaming(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """Send a message and yield the events of its answer as they arrive.

        Args:
            request: the message.
            context: the call's headers, and its ``Wire``.
        """
        if context is None:
            raise ValueError("a call carries its wire in its context")
        body = {
            "jsonrpc": "2.0",
            "id": str(uuid4()),
            "method": "SendStreamingMessage",
            "params": MessageToDict(request),
        }
        headers = {**(context.service_parameters or {}), "Accept": EVENT_STREAM}
        outgoing = self.httpx_client.build_request(
            "POST", self.url, json=body, headers=headers
        )
        wire: Wire = context.state[_WIRE]
        await wire.sending(outgoing, body)
        async with aclosing(self._answer(outgoing, wire)) as answer:
            async for event in answer:
                yield event

    async def _answer(
        self, outgoing: httpx.Request, wire: Wire
    ) -> AsyncGenerator[StreamResponse]:
        response = await self._send(outgoing)
        try:
            wire.replica = response.headers.get("X-Replica", "")
            if not response.headers.get("Content-Type", "").startswith(EVENT_STREAM):
                raise await _refusal(response)
            response.encoding = "utf-8"
            events = EventSource(response).aiter_sse()
            async with aclosing(_in_time(events)) as in_time:
                async for event in in_time:
                    if event.data:
                        yield self._parsed(event.data, wire)
        finally:
            await response.aclose()

    async def _send(self, outgoing: httpx.Request) -> httpx.Response:
        try:
            return await self.httpx_client.send(outgoing, stream=True)
        except httpx.ConnectTimeout as error:
            raise AgentUnreachable(repr(error)) from error
        except httpx.TimeoutException as error:
            raise AgentSilent(repr(error)) from error
        except httpx.HTTPError as error:
            raise AgentUnreachable(repr(error)) from error

    def _parsed(self, text: str, wire: Wire) -> StreamResponse:
        try:
            result = self._check_jsonrpc_response(json.loads(text))["result"]
            event: StreamResponse = parse_lenient(result, StreamResponse())
        except (ValueError, ParseError) as error:
            raise StreamBroken(f"unreadable event: {error}") from error
        except A2AError as error:
            raise AgentRefused(f"{type(error).__name__}: {error}") from error
        wire.size, wire.response = len(text.encode()), result
        return event


async def _refusal(response: httpx.Response) -> OrchestratorError:
    """Read an answer that is no stream: an error, whatever its status."""
    try:
        async with asyncio.timeout(EVENT_SECONDS):
            text = (await response.aread()).decode(errors="replace")
    except (httpx.HTTPError, TimeoutError) as error:
        return StreamBroken(repr(error))
    said = f"HTTP {response.status_code}: {text[:2000]}"
    return _GATEWAY.get(response.status_code, AgentRefused)(said)


async def _in_time(
    events: AsyncGenerator[ServerSentEvent],
) -> AsyncGenerator[ServerSentEvent]:
    async with aclosing(events):
        while True:
            try:
                async with asyncio.timeout(EVENT_SECONDS):
                    event = await anext(events, None)
            except (TimeoutError, httpx.TimeoutException) as error:
                raise AgentSilent(f"no event in {EVENT_SECONDS:g} s") from error
            except httpx.HTTPError as error:
                raise StreamBroken(repr(error)) from error
            if event is None:
                return
            yield event
