"""The project's own Django app: templates, static files and commands."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class WebConfig(AppConfig):
    """Where the two teams' apps are put together."""

    name = "web"

    def ready(self) -> None:
        """Record the facts of recorded runs, in a demo's processes only."""
        if settings.DEMO_SWITCHES:
            from web.demo import recorder

            recorder.connect()
