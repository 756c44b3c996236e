"""What the agent did for whom: one row per tool call and model reply."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One audited action. Never holds a token or an internal remark's secret."""

    at = models.DateTimeField(auto_now_add=True)
    replica = models.CharField(max_length=64)
    subject = models.CharField(max_length=256)
    tenant = models.CharField(max_length=63, blank=True)
    context_id = models.CharField(max_length=128)
    task_id = models.CharField(max_length=128)
    action = models.CharField(max_length=20, help_text="tool-call or model-reply")
    tool = models.CharField(max_length=128, blank=True)
    arguments = models.JSONField(default=dict)
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["subject", "task_id"], name="audit_by_task")]

    def __str__(self) -> str:
        return f"{self.action} {self.tool}".strip()
