"""Runs of the story and their append-only numbered events."""

from __future__ import annotations

from django.db import models

from orchestrator.config import Configuration


class TurnState(models.TextChoices):
    """Whether the newest turn may be followed, is on its way, or may be retried."""

    IDLE = "idle"
    SENDING = "sending"
    FAILED = "failed"


class Run(models.Model):
    """One execution under one fixed configuration."""

    id = models.CharField(primary_key=True, max_length=16, help_text="r-7k3m")
    continuity = models.CharField(max_length=8)
    affinity = models.CharField(max_length=8)
    output = models.CharField(max_length=16)
    sessions = models.CharField(max_length=16)
    context_id = models.CharField(max_length=128, default="ctx-41")
    tenant = models.CharField(max_length=63, default="acme")
    twin_of = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="twins"
    )
    # Browser session that started it; only that one may send its next message.
    started_by = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seq = models.IntegerField(default=0)
    turns_sent = models.IntegerField(default=0)
    turn_state = models.CharField(
        max_length=8, choices=TurnState, default=TurnState.IDLE
    )
    # When it last advanced.
    active_at = models.DateTimeField(auto_now_add=True)
    # When its sender was last alive: a turn whose sender died may be sent again.
    renewed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.id

    @property
    def configuration(self) -> Configuration:
        """The switches the run was started with."""
        return Configuration.parse(
            {
                "continuity": self.continuity,
                "affinity": self.affinity,
                "output": self.output,
                "sessions": self.sessions,
            }
        )

    @property
    def subject(self) -> str:
        """The subject of the run's tokens: tasks and sessions are scoped by it."""
        return f"orchestrator/{self.id}"


class RunEvent(models.Model):
    """Event ``seq`` of a run: what ``part`` did, as ``kind`` with its ``data``."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    seq = models.IntegerField()
    at = models.DateTimeField()
    turn = models.IntegerField()
    part = models.CharField(max_length=64, help_text="orchestrator, router, replica-a")
    kind = models.CharField(max_length=40)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["run", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="run_event_order"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.seq} {self.kind}"
