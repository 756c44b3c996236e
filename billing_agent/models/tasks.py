"""A2A tasks with a version, the events that produced each version, and sends."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

RUNNING = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")


class A2ATask(models.Model):
    """A task's newest snapshot; ``body`` is its protobuf form."""

    id = models.CharField(primary_key=True, max_length=128, db_collation="C")
    owner = models.CharField(max_length=256)
    context_id = models.CharField(max_length=128)
    state = models.CharField(max_length=40)
    # When the state was reached, by the status itself; tasks are listed by it.
    status_at = models.DateTimeField()
    version = models.BigIntegerField()
    body = models.BinaryField()
    updated_at = models.DateTimeField()
    # Who runs it, and when that replica was last heard: the sweeper's evidence.
    replica = models.CharField(max_length=64, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-status_at", "-id"], name="task_by_owner"),
            models.Index(fields=["owner", "context_id"], name="task_by_context"),
            models.Index(
                fields=["updated_at"],
                condition=models.Q(state__in=RUNNING),
                name="task_running",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.state}"


class A2ATaskEvent(models.Model):
    """One event of a task; ``body`` is a protobuf ``StreamResponse``."""

    # The constraint below has the index a foreign key needs.
    task = models.ForeignKey(
        A2ATask, models.CASCADE, related_name="events", db_index=False
    )
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


class A2ASend(models.Model):
    """The task a send was claimed for; a repeated send finds it by the key.

    Written before the task is stored, so ``task_id`` is no foreign key.
    """

    owner = models.CharField(max_length=256)
    send_key = models.CharField(max_length=64, help_text="identity of the send")
    task_id = models.CharField(max_length=128)
    claimed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "send_key"], name="send_once"),
        ]

    def __str__(self) -> str:
        return f"{self.send_key} {self.task_id}"
