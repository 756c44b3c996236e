"""A2A tasks with a version, and the events that produced each version."""

from __future__ import annotations

from django.db import models


class A2ATask(models.Model):
    """A task's newest snapshot; ``body`` is its protobuf form."""

    id = models.CharField(primary_key=True, max_length=128)
    owner = models.CharField(max_length=256)
    context_id = models.CharField(max_length=128)
    state = models.CharField(max_length=40)
    version = models.BigIntegerField()
    body = models.BinaryField()
    updated_at = models.DateTimeField()
    # Who runs it, and when that replica was last heard: the sweeper's evidence.
    replica = models.CharField(max_length=64, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True)
    # Identity of the send that made it: a repeated send finds its task by it.
    send_key = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-updated_at", "-id"], name="task_by_owner"),
            models.Index(fields=["owner", "context_id"], name="task_by_context"),
            models.Index(fields=["state", "updated_at"], name="task_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


class A2ATaskEvent(models.Model):
    """One event of a task; ``body`` is a protobuf ``StreamResponse``."""

    task = models.ForeignKey(A2ATask, models.CASCADE, related_name="events")
    version = models.BigIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ["task", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "version"], name="task_event_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.version}"
