"""Which conversation a message belongs to, settled before anything is created."""

from __future__ import annotations

import unicodedata

from a2a.server.agent_execution import RequestContext, RequestContextBuilder
from a2a.server.cluster import VersionedTaskStore
from a2a.server.context import ServerCallContext
from a2a.types import Message, SendMessageRequest, Task
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from billing_agent.repeats import reserved

CONTEXT_ID_LIMIT = 128
TASK_ID_LIMIT = 128


def check_message(message: Message) -> None:
    """Refuse a message that nothing should be looked up or written for.

    Raises:
        InvalidParamsError: its context id cannot be used, or a part has no content.
        TaskNotFoundError: its task id is longer than any task's.
    """
    if message.context_id:
        check_context_id(message.context_id)
    if len(message.task_id) > TASK_ID_LIMIT:
        raise TaskNotFoundError(f"Task {message.task_id} not found")
    for position, part in enumerate(message.parts):
        if part.WhichOneof("content") is None:
            raise InvalidParamsError(message=f"parts[{position}] has no content")


def check_context_id(context_id: str) -> None:
    """Refuse a context id that the store cannot take.

    Raises:
        InvalidParamsError: longer than 128 characters, with a control character, or
            with spaces around it.
    """
    if len(context_id) > CONTEXT_ID_LIMIT:
        raise InvalidParamsError(
            message=f"contextId is longer than {CONTEXT_ID_LIMIT} characters"
        )
    if any(unicodedata.category(char) == "Cc" for char in context_id):
        raise InvalidParamsError(message="contextId has a control character")
    if context_id != context_id.strip():
        raise InvalidParamsError(message="contextId has spaces around it")


class ConversationContextBuilder(RequestContextBuilder):
    """Builds the request context with the task's own context id.

    A follow-up that names only its task continues that task's conversation;
    a2a-sdk 1.3 would hand it a fresh random context id.

    Args:
        task_store: where the named task is looked up, within the caller's scope.
    """

    def __init__(self, task_store: VersionedTaskStore) -> None:
        self._task_store = task_store

    async def build(
        self,
        context: ServerCallContext,
        params: SendMessageRequest | None = None,
        task_id: str | None = None,
        context_id: str | None = None,
        task: Task | None = None,
    ) -> RequestContext:
        """Return the request context.

        Raises:
            InvalidParamsError: the message or its context id cannot be used.
            TaskNotFoundError: the task id is longer than any task's.
        """
        if params is not None:
            check_message(params.message)
        if task_id and not context_id:
            stored = await self._task_store.get(task_id, context)
            context_id = stored.task.context_id if stored else None
        return RequestContext(
            call_context=context,
            request=params,
            task_id=task_id,
            context_id=context_id,
            task=task,
            task_id_generator=reserved(context),
        )
