"""Addresses of the pages, at the root of the web process."""

from __future__ import annotations

from django.urls import path

from orchestrator import views

app_name = "orchestrator"
urlpatterns = [
    path("", views.index, name="index"),
    path("theme/", views.theme, name="theme"),
    path("runs/", views.start, name="start"),
    path("runs/<slug:run_id>.json", views.run_json, name="json"),
    path("runs/<slug:run_id>/", views.run, name="run"),
    path("runs/<slug:run_id>/walk/<int:step>/", views.walk, name="walk"),
    path("runs/<slug:run_id>/events/", views.events, name="events"),
    path("runs/<slug:run_id>/next/", views.next_, name="next"),
    path("runs/<slug:run_id>/retry/", views.next_, name="retry"),
    path("runs/<slug:run_id>/flip/", views.flip, name="flip"),
    path("runs/<slug:run_id>/again/", views.again, name="again"),
]
