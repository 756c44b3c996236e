"""The billing team's Django app."""

from __future__ import annotations

from django.apps import AppConfig


class BillingAgentConfig(AppConfig):
    """The agent and everything that serves it."""

    name = "billing_agent"
    verbose_name = "billing agent"
