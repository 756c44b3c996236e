"""Attaches the demo to a replica: switches, dispatcher, ledger, recorder."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from starlette.types import ASGIApp

from billing_agent.executor.lifecycle import Executor
from billing_agent.replica import Replica
from web.demo.ledger import ledger_route
from web.demo.switches import (
    EXTENSION,
    Cancel,
    Dispatcher,
    SwitchContextBuilder,
    Switches,
    Toggle,
)


def default_switches() -> Switches:
    """Return the switches that this process's environment chooses."""
    return Switches().chosen(
        {
            "continuity": settings.CONTINUITY,
            "output": settings.OUTPUT,
            "sessions": settings.SESSIONS,
            "cancel": settings.CANCEL,
        }
    )


def serve(replica: Replica, *, elsewhere: Mapping[str, ASGIApp]) -> None:
    """Serve a replica whose callers may choose the demo switches."""
    default = default_switches()

    def build(switches: Switches) -> Executor:
        return replica.executor(
            fixed=switches.continuity is Toggle.ON,
            output_mode=switches.output,
            store=switches.sessions.value,
            hears_channel=switches.cancel is Cancel.BUS,
        )

    replica.serve(
        Dispatcher(build, default),
        extensions=[EXTENSION],
        context_builder=SwitchContextBuilder(replica.task_store, default),
        routes=[ledger_route(replica.name, replica.sessions)],
        elsewhere=elsewhere,
    )
