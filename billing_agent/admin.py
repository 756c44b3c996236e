"""The billing side in Django's admin: invoices to edit, everything else to read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from a2a.types import StreamResponse, Task
from django.contrib import admin
from django.db.models import Count, Model, QuerySet, Sum
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message

from billing_agent import models
from billing_agent.models.sessions import SEPARATOR

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
    Lines = admin.TabularInline[models.LineItem, models.Invoice]
else:
    Admin, Lines = admin.ModelAdmin, admin.TabularInline

SHOWN_EVENTS = 200
"""How many events a page lists, the newest ones."""


class ReadOnlyAdmin(Admin):
    """Rows that only the agent writes: no adding, changing or deleting."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


class LineItemInline(Lines):
    """The lines on their invoice's page."""

    model = models.LineItem
    extra = 0


@admin.register(models.Tenant)
class TenantAdmin(Admin):
    """Customers."""

    list_display = ["slug", "name"]
    search_fields = ["slug", "name"]


@admin.register(models.Invoice)
class InvoiceAdmin(Admin):
    """Invoices with their lines."""

    list_display = ["number", "tenant", "period", "total"]
    list_filter = ["tenant"]
    search_fields = ["number"]
    date_hierarchy = "period"
    inlines = [LineItemInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[models.Invoice] = super().get_queryset(request)
        return rows.select_related("tenant").annotate(total=Sum("lines__amount"))

    @admin.display(ordering="total")
    def total(self, invoice: Any) -> Any:
        return invoice.total


class ScopedAdmin(ReadOnlyAdmin):
    """Rows of one ADK user, whose id carries the subject it belongs to."""

    @admin.display(ordering="user_id")
    def owner(self, row: models.AdkSession | models.AdkUserState) -> str:
        return row.user_id.rpartition(SEPARATOR)[0]

    @admin.display(ordering="user_id")
    def user(self, row: models.AdkSession | models.AdkUserState) -> str:
        return row.user_id.rpartition(SEPARATOR)[2]

    @admin.display(description="state")
    def state_text(self, row: Any) -> SafeString:
        return _block(json.dumps(row.state, indent=2, ensure_ascii=False))


@admin.register(models.AdkSession)
class AdkSessionAdmin(ScopedAdmin):
    """ADK sessions with their history."""

    list_display = ["session_id", "user", "owner", "event_count", "changed"]
    search_fields = ["session_id", "user_id"]
    fields = ["session_id", "user", "owner", "app_name", "revision", "created_at"]
    fields += ["changed", "state_text", "history"]
    readonly_fields = ["user", "owner", "changed", "state_text", "history"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[models.AdkSession] = super().get_queryset(request)
        return rows.annotate(held=Count("events"))

    @admin.display(ordering="held", description="events")
    def event_count(self, session: Any) -> Any:
        return session.held

    @admin.display(ordering="updated_at")
    def changed(self, session: models.AdkSession) -> datetime:
        return datetime.fromtimestamp(session.updated_at, UTC)

    def history(self, session: models.AdkSession) -> SafeString:
        newest = session.events.order_by("-seq")[:SHOWN_EVENTS]
        lines = ((row.seq, _line(row)) for row in reversed(newest))
        return format_html_join("", "<div>{} · {}</div>", lines)


@admin.register(models.AdkEvent)
class AdkEventAdmin(ReadOnlyAdmin):
    """Single events of ADK sessions."""

    list_display = ["event_id", "session", "seq", "line"]
    list_select_related = ["session"]
    search_fields = ["event_id", "session__session_id"]
    fields = ["session", "seq", "event_id", "content"]
    readonly_fields = ["content"]

    def line(self, row: models.AdkEvent) -> str:
        return _line(row)

    def content(self, row: models.AdkEvent) -> SafeString:
        return _block(json.dumps(json.loads(row.body), indent=2, ensure_ascii=False))


@admin.register(models.AdkUserState)
class AdkUserStateAdmin(ScopedAdmin):
    """``user:`` state."""

    list_display = ["user", "owner", "app_name", "state_text"]
    search_fields = ["user_id"]
    fields = ["user", "owner", "app_name", "state_text"]


@admin.register(models.AdkAppState)
class AdkAppStateAdmin(ReadOnlyAdmin):
    """``app:`` state."""

    list_display = ["app_name", "state"]


@admin.register(models.MemoryEntry)
class MemoryEntryAdmin(ReadOnlyAdmin):
    """What is remembered across conversations."""

    list_display = ["key", "session_id", "author", "text"]
    search_fields = ["key", "session_id", "text"]


@admin.register(models.A2ATask)
class A2ATaskAdmin(ReadOnlyAdmin):
    """A2A tasks, decoded, with the events that made them."""

    list_display = ["id", "owner", "context_id", "state", "replica", "updated_at"]
    list_filter = ["state", "replica"]
    search_fields = ["id", "context_id", "owner"]
    fields = ["id", "owner", "context_id", "state", "version", "updated_at"]
    fields += ["replica", "heartbeat_at", "task", "history"]
    readonly_fields = ["task", "history"]

    def task(self, row: models.A2ATask) -> SafeString:
        return _block(_decoded(Task(), row.body))

    def history(self, row: models.A2ATask) -> SafeString:
        newest = row.events.order_by("-version")[:SHOWN_EVENTS]
        return format_html_join(
            "",
            "<div>{}</div>{}",
            (
                (event.version, _block(_decoded(StreamResponse(), event.body)))
                for event in reversed(newest)
            ),
        )


@admin.register(models.A2ATaskEvent)
class A2ATaskEventAdmin(ReadOnlyAdmin):
    """Single events of A2A tasks."""

    list_display = ["task_id", "version", "kind"]
    search_fields = ["task__id"]
    fields = ["task", "version", "content"]
    readonly_fields = ["content"]

    def kind(self, row: models.A2ATaskEvent) -> str:
        event = StreamResponse.FromString(bytes(row.body))
        return str(event.WhichOneof("payload"))

    def content(self, row: models.A2ATaskEvent) -> SafeString:
        return _block(_decoded(StreamResponse(), row.body))


@admin.register(models.A2ASend)
class A2ASendAdmin(ReadOnlyAdmin):
    """Sends by which a repeated one is recognised."""

    list_display = ["send_key", "owner", "task_id", "claimed_at"]
    search_fields = ["send_key", "task_id", "owner"]


@admin.register(models.AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit trail."""

    list_display = ["at", "tenant", "action", "tool", "arguments", "task_id", "replica"]
    list_filter = ["action", "tool", "tenant", "replica"]
    search_fields = ["subject", "task_id", "context_id"]
    date_hierarchy = "at"


def _line(row: models.AdkEvent) -> str:
    # ADK takes half a second to import: not before somebody looks at an event.
    from google.adk.events.event import Event

    from billing_agent.agent.callbacks import line_of

    return line_of(Event.model_validate_json(row.body))


def _decoded(message: Message, body: bytes | memoryview) -> str:
    message.ParseFromString(bytes(body))
    return str(MessageToJson(message, ensure_ascii=False))


def _block(text: str) -> SafeString:
    return format_html("<pre>{}</pre>", text)
