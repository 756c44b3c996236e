"""ADK sessions, their events and the state scopes above them."""

from __future__ import annotations

from django.db import models


class AdkSession(models.Model):
    """One conversation as ADK keeps it; ``user_id`` carries the caller's scope."""

    app_name = models.CharField(max_length=128)
    user_id = models.CharField(max_length=512)
    session_id = models.CharField(max_length=128)
    state = models.JSONField(default=dict)
    revision = models.BigIntegerField(default=0, help_text="events ever appended")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.FloatField(help_text="seconds since the epoch, as ADK keeps it")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app_name", "user_id", "session_id"], name="adk_session_key"
            ),
        ]

    def __str__(self) -> str:
        return self.session_id


class AdkEvent(models.Model):
    """One event of a session, in the order it was appended."""

    session = models.ForeignKey(AdkSession, models.CASCADE, related_name="events")
    seq = models.BigIntegerField(help_text="revision of the session it made")
    event_id = models.CharField(max_length=128)
    timestamp = models.FloatField()
    body = models.TextField(help_text="ADK's JSON of the event")

    class Meta:
        ordering = ["session", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="adk_event_order"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.event_id}"


class AdkUserState(models.Model):
    """``user:`` state of one ADK user."""

    app_name = models.CharField(max_length=128)
    user_id = models.CharField(max_length=512)
    state = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app_name", "user_id"], name="adk_user_key"
            ),
        ]

    def __str__(self) -> str:
        return self.user_id


class AdkAppState(models.Model):
    """``app:`` state, shared by every caller of the app."""

    app_name = models.CharField(max_length=128, unique=True)
    state = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.app_name
