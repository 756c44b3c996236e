"""Addresses of the pages, at the root of the web process."""

from __future__ import annotations

from django.urls import path

from orchestrator import actions, views

app_name = "orchestrator"
urlpatterns = [
    path("", views.index, name="index"),
    path("theme/", actions.theme, name="theme"),
    path("runs/", actions.start, name="start"),
    path("runs/<slug:run_id>.json", views.run_json, name="json"),
    path("runs/<slug:run_id>/", views.run, name="run"),
    path("runs/<slug:run_id>/walk/<int:step>/", views.walk, name="walk"),
    path("runs/<slug:run_id>/events/", views.events, name="events"),
    path("runs/<slug:run_id>/next/", actions.go_on, name="next"),
    path("runs/<slug:run_id>/retry/", actions.go_on, name="retry"),
    path("runs/<slug:run_id>/flip/", actions.flip, name="flip"),
    path("runs/<slug:run_id>/again/", actions.again, name="again"),
]
