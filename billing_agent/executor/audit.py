"""The ``after_event`` hook: writes the audit trail, strips what is internal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from a2a.server.agent_execution import RequestContext
from a2a.types import TaskArtifactUpdateEvent
from google.adk.events.event import Event
from google.protobuf.struct_pb2 import Struct, Value
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from billing_agent.models import AuditEntry

_TENANT_KEY = "x-verified-tenant"
_INTERNAL_KEYS = frozenset({_TENANT_KEY, "a2a-metadata"})
# Of ADK's own keys only those leave that say what a part is (part_converter).
_PART_MARKERS = frozenset(
    {
        "adk_is_long_running",
        "adk_media_resolution",
        "adk_thought",
        "adk_thought_signature",
        "adk_type",
        "adk_video_metadata",
    }
)

# One statement, so one round trip on an autocommit connection.
_INSERT = f"""\
INSERT INTO {AuditEntry._meta.db_table}
  (at, replica, subject, tenant, context_id, task_id, action, tool, arguments, text)
SELECT now(), %s, %s, %s, %s, %s, action, tool, arguments::jsonb, text
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
    AS entry(action, tool, arguments, text)"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing the agent did: a tool call, or a reply of the model.

    A reply that goes on to call a tool is working text and kept without its words,
    which were not meant for the caller.
    """

    action: str
    tool: str = ""
    arguments: str = "{}"
    text: str = ""


class AuditTrail:
    """Writes one row per tool call and model reply, for events that leave or not.

    Args:
        pool: open pool of autocommit connections to the audit table's database.
        replica: the name of this replica.
    """

    def __init__(
        self, pool: AsyncConnectionPool[AsyncConnection[Any]], replica: str
    ) -> None:
        self._pool = pool
        self._replica = replica

    async def __call__(
        self,
        context: RequestContext,
        update: TaskArtifactUpdateEvent | None,
        event: Event,
    ) -> TaskArtifactUpdateEvent | None:
        """Audit an event; return its update without internal keys.

        Raises:
            psycopg.Error: the rows could not be written. The run then fails: what
                is not audited does not happen.
        """
        if entries := entries_of(event):
            await self._write(context, entries)
        return None if update is None else redacted(update)

    async def _write(self, context: RequestContext, entries: list[Entry]) -> None:
        tenant = context.metadata.get(_TENANT_KEY)
        values = (
            self._replica,
            context.call_context.user.user_name,
            tenant if isinstance(tenant, str) else "",
            context.context_id,
            context.task_id,
            [entry.action for entry in entries],
            [entry.tool for entry in entries],
            [entry.arguments for entry in entries],
            [entry.text for entry in entries],
        )
        async with self._pool.connection() as connection:
            await connection.execute(_INSERT, values)


def entries_of(event: Event) -> list[Entry]:
    """Return what of an ADK event is audited; nothing of a partial one."""
    content = event.content
    if event.partial or content is None or content.role != "model":
        return []
    parts = content.parts or []
    calls = [
        Entry(
            "tool-call",
            (call.name or "")[:128],
            json.dumps(call.args or {}, ensure_ascii=False, default=str),
        )
        for call in event.get_function_calls()
    ]
    words = [part.text for part in parts if part.text and not part.thought]
    if not words:
        return calls
    return [Entry("model-reply", text="" if calls else "\n".join(words)), *calls]


def redacted(update: TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
    """Return a copy of an update that carries no key of the server's own."""
    clean = TaskArtifactUpdateEvent()
    clean.CopyFrom(update)
    for holder in (clean, clean.artifact, *clean.artifact.parts):
        _strip(holder.metadata)
        if not holder.metadata.fields:
            holder.ClearField("metadata")
    for part in clean.artifact.parts:
        if part.HasField("data"):
            _strip_value(part.data)
    return clean


def is_internal(key: str) -> bool:
    """Return whether a key is the server's own, in any spelling."""
    spelled = key.lower()
    if spelled.startswith("adk_"):
        return spelled not in _PART_MARKERS
    return spelled.replace("_", "-") in _INTERNAL_KEYS


def _strip(struct: Struct) -> None:
    for key in list(struct.fields):
        if is_internal(key):
            del struct.fields[key]
        else:
            _strip_value(struct.fields[key])


def _strip_value(value: Value) -> None:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        _strip(value.struct_value)
    elif kind == "list_value":
        for item in value.list_value.values:
            _strip_value(item)
