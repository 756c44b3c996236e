"""The admin: every model is there, and what the agent wrote can only be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from a2a.types import Message, Part, StreamResponse, Task, TaskState
from django.apps import apps
from django.contrib import admin
from django.urls import reverse
from google.adk.events.event import Event
from google.genai import types

from billing_agent.admin import ReadOnlyAdmin
from billing_agent.models import (
    A2ATask,
    A2ATaskEvent,
    AdkEvent,
    AdkSession,
    AdkUserState,
    AuditEntry,
    Invoice,
    LineItem,
    Tenant,
)
from billing_agent.seed import seed

pytestmark = pytest.mark.django_db

# Lines are shown and edited on their invoice's page.
MODELS = [
    model
    for model in apps.get_app_config("billing_agent").get_models()
    if model is not LineItem
]


def page(client, model, pk=None):
    place = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    url = (
        reverse(f"{place}_change", args=[pk]) if pk else reverse(f"{place}_changelist")
    )
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def a_session():
    session = AdkSession.objects.create(
        app_name="billing_agent",
        user_id="orchestrator/run-7\x1fA2A_USER_ctx-41",
        session_id="ctx-41",
        state={"note": "<b>bold</b>"},
        revision=1,
        updated_at=1_790_000_000.0,
    )
    question = types.Content(role="user", parts=[types.Part(text="Why <so> much?")])
    event = Event(author="user", content=question)
    row = AdkEvent.objects.create(
        session=session,
        seq=1,
        event_id=event.id,
        timestamp=event.timestamp,
        body=event.model_dump_json(exclude_none=True, by_alias=True),
    )
    return session, row


def a_task():
    task = Task(id="t-1", context_id="ctx-41")
    task.status.state = TaskState.TASK_STATE_WORKING
    task.history.append(Message(message_id="m", parts=[Part(text="請求書 <why>")]))
    now = datetime.now(UTC)
    row = A2ATask.objects.create(
        id="t-1",
        owner="orchestrator",
        context_id="ctx-41",
        state="TASK_STATE_WORKING",
        status_at=now,
        version=1,
        body=task.SerializeToString(),
        updated_at=now,
    )
    body = StreamResponse(task=task).SerializeToString()
    return row, A2ATaskEvent.objects.create(task=row, version=1, body=body)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_model_has_a_page(admin_client, model):
    page(admin_client, model)


def test_what_the_agent_writes_is_read_only():
    editable = [
        model
        for model in MODELS
        if not isinstance(admin.site._registry[model], ReadOnlyAdmin)
    ]
    assert editable == [Tenant, Invoice]


def test_nothing_read_only_can_be_added_changed_or_deleted(admin_client):
    row = AuditEntry.objects.create(
        replica="replica-a",
        subject="s",
        tenant="acme",
        context_id="ctx-41",
        task_id="t-1",
        action="tool-call",
        tool="get_invoice",
        arguments={"number": 8812},
    )
    place = "admin:billing_agent_auditentry"
    assert admin_client.get(reverse(f"{place}_add")).status_code == 403
    change = reverse(f"{place}_change", args=[row.pk])
    assert admin_client.post(change, {"tool": "other"}).status_code == 403
    delete = reverse(f"{place}_delete", args=[row.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert "get_invoice" in page(admin_client, AuditEntry)
    assert AuditEntry.objects.get().tool == "get_invoice"


def test_an_invoice_shows_its_lines_and_total(admin_client):
    seed()
    assert "4310.20" in page(admin_client, Invoice)
    invoice = Invoice.by_tenant.for_tenant("acme").get(number=8812)
    assert "2960.00" in page(admin_client, Invoice, invoice.pk)


def test_a_session_shows_owner_user_and_history(admin_client):
    session, _ = a_session()
    for html in (
        page(admin_client, AdkSession),
        page(admin_client, AdkSession, session.pk),
    ):
        assert "orchestrator/run-7" in html
        assert "A2A_USER_ctx-41" in html
        assert "\x1f" not in html
    assert "1 · user: Why &lt;so&gt; much?" in html
    assert "<b>bold</b>" not in html


def test_an_event_shows_its_line_and_its_json(admin_client):
    _, row = a_session()
    assert "user: Why &lt;so&gt; much?" in page(admin_client, AdkEvent)
    assert "&quot;author&quot;: &quot;user&quot;" in page(
        admin_client, AdkEvent, row.pk
    )


def test_user_state_shows_its_owner(admin_client):
    AdkUserState.objects.create(
        app_name="billing_agent",
        user_id="orchestrator\x1fA2A_USER_ctx-41",
        state={"preferences": ["short answers"]},
    )
    html = page(admin_client, AdkUserState)
    assert "short answers" in html
    assert "\x1f" not in html


def test_a_task_is_decoded_with_its_events(admin_client):
    row, event = a_task()
    html = page(admin_client, A2ATask, row.pk)
    assert html.count("請求書 &lt;why&gt;") == 2
    assert "TASK_STATE_WORKING" in html
    assert "contextId" in page(admin_client, A2ATaskEvent, event.pk)
    assert ">task<" in page(admin_client, A2ATaskEvent)


def test_stored_bytes_are_never_shown_raw(admin_client):
    row, _ = a_task()
    assert "&lt;memory" not in page(admin_client, A2ATask, row.pk)
    assert json.dumps("b'") not in page(admin_client, A2ATask, row.pk)
