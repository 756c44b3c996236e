"""The other team's Django app: its client and its pages."""

from __future__ import annotations

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Runs of the story, and the pages that show them."""

    name = "orchestrator"
