"""The ASGI application of the web process: pages, and sockets for live updates."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, cast

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

if TYPE_CHECKING:
    from starlette.types import ASGIApp

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
pages = cast("ASGIApp", get_asgi_application())

# The first page should not wait for it.
import_module(settings.ROOT_URLCONF)

# These need the apps.
from orchestrator.sockets import websocket_urlpatterns  # noqa: E402
from web.health import Liveness  # noqa: E402
from web.origin import SameOriginSockets  # noqa: E402

sockets = SameOriginSockets(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
application = ProtocolTypeRouter({"http": Liveness(pages), "websocket": sockets})
