"""Addresses of the sockets."""

from __future__ import annotations

from channels.security.websocket import WebsocketDenier
from django.urls import re_path

from orchestrator.consumers import RunConsumer

# An id that no run can have is no address, and whatever is none is denied.
websocket_urlpatterns = [
    re_path(r"^ws/runs/(?P<run_id>[-a-zA-Z0-9]{1,16})/$", RunConsumer.as_asgi()),
    re_path("", WebsocketDenier.as_asgi()),
]
