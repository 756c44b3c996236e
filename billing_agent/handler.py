"""The request handler: a2a-sdk's own, with bounded waits and opaque errors."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.default_request_handler_v2 import (
    DefaultRequestHandlerV2,
)
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
)
from a2a.utils.errors import A2AError, InternalError
from a2a.utils.task import apply_history_length

from billing_agent.executor.outcome import ends_run, is_terminal
from billing_agent.follow_ups import FollowUps
from billing_agent.repeats import Claim, Repeats
from billing_agent.request_context import check_message

logger = logging.getLogger(__name__)


@asynccontextmanager
async def opaque_errors() -> AsyncIterator[None]:
    """Let protocol errors pass; hide every other one behind an error id."""
    try:
        yield
    except A2AError as error:
        if not isinstance(error, InternalError):
            raise
        raise hidden(error) from None
    except Exception as error:
        raise hidden(error) from None


def hidden(error: BaseException) -> InternalError:
    """Return what a caller is told of an exception; the log has the same id."""
    error_id = secrets.token_hex(6)
    logger.error("Request failed [error_id=%s]", error_id, exc_info=error)
    return InternalError(message=f"Internal error. (error_id: {error_id})")


class Handler(DefaultRequestHandlerV2):
    """Adds two bounds to a blocking send, answers repeated sends, hides exceptions.

    A blocking send returns the task as it stands when its run takes longer than
    ``blocking_wait`` seconds, or when its events take longer than
    ``consumption_wait`` seconds to be stored after the run has ended. The run goes on.

    Args:
        running: says whether a task's run is still going on in this process.
        repeats: tells repeated sends from first ones; none are told without it.
        follow_ups: lets one message at a time work on a task.
        blocking_wait: seconds.
        consumption_wait: seconds.
        options: everything else goes to a2a-sdk's handler as it is.
    """

    def __init__(
        self,
        *,
        running: Callable[[str], bool],
        repeats: Repeats | None,
        follow_ups: FollowUps,
        blocking_wait: float,
        consumption_wait: float,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._running = running
        self._repeats = repeats
        self._follow_ups = follow_ups
        self._blocking_wait = blocking_wait
        self._consumption_wait = consumption_wait

    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Message | Task:
        async with opaque_errors(), self._claimed(params, context) as claim:
            if claim is None or claim.first:
                async with self._follow_ups.alone(params.message.task_id, context):
                    return await self._send(params, context)
            return await self._send_again(claim, params)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        async with opaque_errors(), self._claimed(params, context) as claim:
            if claim is None or claim.first:
                events = self._stream(params, context)
            else:
                events = self._stream_again(claim)
            async with aclosing(events) as stream:
                async for event in stream:
                    yield event

    @asynccontextmanager
    async def _claimed(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncIterator[Claim | None]:
        """Hold a send's claim; a send that fails gives it back."""
        check_message(params.message)
        claim = await self._repeats.claim(params, context) if self._repeats else None
        try:
            yield claim
        except Exception:
            if claim is not None and claim.first:
                await claim.give_back()
            raise

    async def _send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Message | Task:
        # Asked now: a2a-sdk writes the id of a new task into the message.
        follows_up = bool(params.message.task_id)
        sending: asyncio.Future[Message | Task] = asyncio.ensure_future(
            super().on_message_send(params, context)
        )
        try:
            if await self._in_time(sending, params):
                result = sending.result()
                if follows_up:
                    await self._follow_ups.check_heard(result, params.message, context)
                return result
            return await self._as_it_stands(params, context)
        finally:
            # Ends this wait only: the run has a task of its own.
            sending.cancel()

    async def _stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        unheard = bool(params.message.task_id)
        async with self._follow_ups.alone(params.message.task_id, context):
            events = super().on_message_send_stream(params, context)
            async with aclosing(events) as stream:
                async for event in stream:
                    if unheard:
                        await self._follow_ups.check_heard(
                            event, params.message, context
                        )
                        unheard = False
                    yield event

    async def _in_time(
        self, sending: asyncio.Future[Message | Task], params: SendMessageRequest
    ) -> bool:
        await asyncio.wait({sending}, timeout=self._blocking_wait)
        if not sending.done() and not self._running(params.message.task_id):
            await asyncio.wait({sending}, timeout=self._consumption_wait)
        return sending.done()

    async def _as_it_stands(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Task:
        stored = await self._versioned_store.get(params.message.task_id, context)
        if stored is None:
            raise InternalError(message="The task was not stored in time.")
        return apply_history_length(stored.task, params.configuration)

    async def _send_again(self, claim: Claim, params: SendMessageRequest) -> Task:
        """Return the first send's task as this send's mode asks for it."""
        at_once = params.configuration.return_immediately
        task: Task | None
        try:
            async with asyncio.timeout(self._blocking_wait):
                task = await (claim.taken() if at_once else claim.settled())
        except TimeoutError:
            task, _ = await claim.task()
            if task is None or not claim.heard(task):
                raise InternalError(
                    message="The first send is not under way."
                ) from None
        return apply_history_length(task, params.configuration)

    async def _stream_again(self, claim: Claim) -> AsyncGenerator[Event, None]:
        """Yield the first send's task and what follows, up to the end of its run."""
        async with asyncio.timeout(self._blocking_wait):
            task = await claim.taken()
        if claim.is_settled(task):
            yield task
            return
        request = SubscribeToTaskRequest(id=claim.task_id)
        events = super().on_subscribe_to_task(request, claim.context)
        async with aclosing(events) as stream:
            async for event in stream:
                # Asked now: a2a-sdk changes the task it handed out.
                asks_or_ended = isinstance(event, Task) and claim.is_settled(event)
                yield event
                if asks_or_ended or ends_run(event):
                    return

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        async with opaque_errors():
            events = super().on_subscribe_to_task(params, context)
            async with aclosing(events) as stream:
                async for event in stream:
                    # The first event shows the task as it is: the one that brought
                    # it there may still be on its way. Asked now: a2a-sdk changes
                    # the task it handed out.
                    ended = is_terminal(event)
                    yield event
                    if ended:
                        return

    async def on_get_task(
        self, params: GetTaskRequest, context: ServerCallContext
    ) -> Task | None:
        async with opaque_errors():
            task: Task | None = await super().on_get_task(params, context)
            return task

    async def on_list_tasks(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        async with opaque_errors():
            page: ListTasksResponse = await super().on_list_tasks(params, context)
            return page

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        async with opaque_errors():
            task: Task | None = await super().on_cancel_task(params, context)
            return task
