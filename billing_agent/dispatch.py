"""a2a-sdk's dispatchers, with errors that tell a caller about its own request only.

What the SDK itself cannot read or did not expect it answers with the text of the
Python exception; everything the handler raises is safe already.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import InternalError as Unhandled
from a2a.server.jsonrpc_models import JSONParseError, JSONRPCError
from a2a.server.request_handlers import RequestHandler
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.server.routes.rest_dispatcher import RestDispatcher
from a2a.utils.errors import A2AError, InvalidParamsError, InvalidRequestError
from google.protobuf.json_format import ParseError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from billing_agent.card import REST_PATH, RPC_PATH
from billing_agent.handler import hidden, opaque_errors
from billing_agent.refusals import NotServed, refuse

_PARSE_ERROR = "parseError"
# protobuf names the fields it went through, outermost first, then quotes the value.
_FIELDS = re.compile(r"(?:Failed to parse \w+ field: )+")


def unreadable(reason: str) -> InvalidParamsError:
    """Return the error for parameters that protobuf could not read.

    Args:
        reason: protobuf's own words; only the names of the fields are taken.
    """
    path = _FIELDS.match(reason)
    names = re.findall(r"parse (\w+) field", path[0]) if path else []
    what = ".".join(names) if names else "the request"
    return InvalidParamsError(message=f"{what} cannot be read")


class RpcDispatcher(JsonRpcDispatcher):
    """JSON-RPC 2.0 (A2A 1.0, section 9)."""

    def _generate_error_response(
        self, request_id: str | int | None, error: Exception | JSONRPCError | A2AError
    ) -> JSONResponse:
        return super()._generate_error_response(request_id, _told(error))

    async def _process_streaming_request(
        self, request_id: str | int | None, request_obj: Any, context: ServerCallContext
    ) -> AsyncGenerator[dict[str, Any], None]:
        stream = await super()._process_streaming_request(
            request_id, request_obj, context
        )
        return _opaque(stream)


def _told(error: Exception | JSONRPCError) -> Exception | JSONRPCError:
    """Return what may be told of an error that the dispatcher made itself."""
    if isinstance(error, Unhandled):
        # Called while the exception, whose text this is, is being handled.
        return hidden(sys.exception() or RuntimeError(error.message))
    if isinstance(error, JSONParseError):
        return JSONParseError()
    data = error.data if isinstance(error, A2AError) else None
    if not data or _PARSE_ERROR not in data:
        return error
    if isinstance(error, InvalidRequestError):
        return InvalidRequestError(message="not a request of JSON-RPC 2.0")
    return unreadable(data[_PARSE_ERROR])


async def _opaque(
    stream: AsyncGenerator[dict[str, Any], None],
) -> AsyncGenerator[dict[str, Any], None]:
    async with opaque_errors():
        async for event in stream:
            yield event


class HttpJsonDispatcher(RestDispatcher):
    """The HTTP+JSON binding (A2A 1.0, section 11)."""

    async def _handle_non_streaming(self, request: Any, handler_func: Any) -> Any:
        async with _readable():
            return await super()._handle_non_streaming(request, handler_func)

    async def _handle_streaming(self, request: Any, handler_func: Any) -> Any:
        async with _readable():
            return await super()._handle_streaming(request, handler_func)


@asynccontextmanager
async def _readable() -> AsyncIterator[None]:
    try:
        yield
    except A2AError:
        raise
    except ParseError as error:
        raise unreadable(str(error)) from None
    except Exception as error:
        raise hidden(error) from None


class Routes(Router):
    """Routes; what none of them takes is answered with an error in JSON."""

    def __init__(self, routes: list[BaseRoute]) -> None:
        super().__init__(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # With an application in the scope Starlette raises what it would answer
            # as plain text without one.
            await super().__call__({**scope, "app": self}, receive, send)
        except HTTPException as error:
            allowed = (error.headers or {}).get("Allow", "")
            await refuse(scope, send, NotServed(error.status_code, allowed))


def rpc_route(handler: RequestHandler) -> Route:
    """Return the route of the JSON-RPC binding."""
    rpc = RpcDispatcher(handler)
    return Route(RPC_PATH, rpc.handle_requests, methods=["POST"])


def rest_routes(handler: RequestHandler) -> list[Route]:
    """Return the routes of the HTTP+JSON binding.

    a2a-sdk would add all of them once more under ``/{tenant}``, which takes the
    tenant from the path: the caller's own word.
    """
    rest = HttpJsonDispatcher(handler)
    task, configs = "/tasks/{id}", "/tasks/{id}/pushNotificationConfigs"
    table = (
        ("POST", "/message:send", rest.on_message_send),
        ("POST", "/message:stream", rest.on_message_send_stream),
        ("POST", f"{task}:cancel", rest.on_cancel_task),
        ("GET", f"{task}:subscribe", rest.on_subscribe_to_task),
        ("POST", f"{task}:subscribe", rest.on_subscribe_to_task),
        ("GET", task, rest.on_get_task),
        ("GET", "/tasks", rest.list_tasks),
        ("POST", configs, rest.set_push_notification),
        ("GET", configs, rest.list_push_notifications),
        ("GET", f"{configs}/{{push_id}}", rest.get_push_notification),
        ("DELETE", f"{configs}/{{push_id}}", rest.delete_push_notification),
        ("GET", "/extendedAgentCard", rest.handle_authenticated_agent_card),
    )
    return [
        Route(REST_PATH + path, endpoint, methods=[method])
        for method, path, endpoint in table
    ]
