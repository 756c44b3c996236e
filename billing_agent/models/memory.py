"""What the memory services remember across sessions."""

from __future__ import annotations

from django.db import models


class MemoryEntry(models.Model):
    """One remembered text under a key: an ADK user, or a verified tenant."""

    app_name = models.CharField(max_length=128)
    key = models.CharField(max_length=512, help_text="user or tenant it is kept under")
    session_id = models.CharField(max_length=128)
    event_id = models.CharField(max_length=128)
    author = models.CharField(max_length=128)
    timestamp = models.FloatField()
    text = models.TextField()
    folded = models.TextField(help_text="the text in NFC and lower case, to search")
    content = models.TextField(help_text="ADK's JSON of the whole content")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app_name", "key", "event_id"], name="memory_once"
            ),
        ]
        verbose_name_plural = "memory entries"

    def __str__(self) -> str:
        return self.text[:60]
