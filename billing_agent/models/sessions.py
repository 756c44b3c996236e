"""ADK sessions, their events and the state scopes above them.

Names are compared byte by byte (collation C), as Python compares them.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

SEPARATOR = "\x1f"
"""Between a caller's scope and the ADK user id in ``user_id``."""


class AdkSession(models.Model):
    """One conversation as ADK keeps it; ``user_id`` carries the caller's scope."""

    app_name = models.CharField(max_length=128, db_collation="C")
    user_id = models.CharField(max_length=512, db_collation="C")
    session_id = models.CharField(max_length=128, db_collation="C")
    state = models.JSONField(default=dict)
    revision = models.BigIntegerField(default=0, help_text="events ever appended")
    created_at = models.DateTimeField(db_default=Now())
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

    # The constraint below has the index a foreign key needs.
    session = models.ForeignKey(
        AdkSession, models.CASCADE, related_name="events", db_index=False
    )
    seq = models.BigIntegerField(help_text="revision of the session it made")
    event_id = models.CharField(max_length=128)
    timestamp = models.FloatField()
    body = models.TextField(help_text="ADK's JSON of the event")

    class Meta:
        ordering = ["session", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="adk_event_order"),
        ]
        indexes = [models.Index(fields=["session", "event_id"], name="adk_event_by_id")]

    def __str__(self) -> str:
        return f"{self.seq} {self.event_id}"


class AdkUserState(models.Model):
    """``user:`` state of one ADK user."""

    app_name = models.CharField(max_length=128, db_collation="C")
    user_id = models.CharField(max_length=512, db_collation="C")
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

    app_name = models.CharField(max_length=128, db_collation="C", unique=True)
    state = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.app_name
