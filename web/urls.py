"""Addresses of the web process: pages, token issuer, admin, readiness."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from billing_agent.identity import issuer
from web.health import readyz

admin.autodiscover()

urlpatterns = [
    path("admin/", admin.site.urls),
    path("readyz", readyz),
    path("", include(issuer.urlpatterns)),
    path("", include("orchestrator.urls")),
]
handler400 = "web.errors.bad_request"
handler403 = "web.errors.forbidden"
handler404 = "web.errors.not_found"
handler500 = "web.errors.server_error"
