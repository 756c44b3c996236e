"""Addresses of the sockets."""

from __future__ import annotations

from django.urls import path

from orchestrator.consumers import RunConsumer

websocket_urlpatterns = [path("ws/runs/<slug:run_id>/", RunConsumer.as_asgi())]
