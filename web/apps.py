"""The project's own Django app: templates, static files and commands."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Where the two teams' apps are put together."""

    name = "web"
