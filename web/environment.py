"""Every setting of the project as one row: name, default, help.

The settings module, ``--help``, ``docs/settings.md`` and ``compose.yaml`` are
compared with this list by a test.
"""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.core.exceptions import ImproperlyConfigured


class SettingUnusable(ImproperlyConfigured, ValueError):
    """A setting has a value that means nothing; the message is one line."""


class Setting(NamedTuple):
    """One environment variable; ``default`` is the text it has when unset."""

    name: str
    default: str
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting("DATABASE_URL", "", "PostgreSQL URL; empty: the embedded server of demo"),
    Setting("VAR_DIR", "", "folder for keys, secrets and embedded data; empty: var/"),
    Setting("WEB_URL", "http://127.0.0.1:8000", "where the orchestrator's pages are"),
    Setting(
        "PUBLIC_URL", "http://127.0.0.1:8080", "the router, as written in the card"
    ),
    Setting(
        "REPLICAS",
        "replica-a=http://127.0.0.1:8001,replica-b=http://127.0.0.1:8002",
        "names and addresses of the replicas, in routing order",
    ),
    Setting(
        "ALLOWED_HOSTS",
        "127.0.0.1,localhost",
        "host names answered, comma separated",
    ),
    Setting("DEBUG", "0", "1: Django's debug mode; never on a reachable address"),
    Setting("SECRET_KEY", "", "Django's secret; empty: generated once under VAR_DIR"),
    Setting(
        "OIDC_ISSUER", "", "issuer of access tokens; empty: the demo's own, WEB_URL"
    ),
    Setting("OIDC_AUDIENCE", "billing-agent", "audience an access token must name"),
    Setting("OIDC_CLIENT_ID", "orchestrator", "the orchestrator's client id"),
    Setting("OIDC_CLIENT_SECRET", "", "its secret; empty: generated under VAR_DIR"),
    Setting("DEMO_SWITCHES", "0", "1: replicas honour the demo-switches extension"),
    Setting("CONTINUITY", "on", "continuity hook without the extension: on, off"),
    Setting("OUTPUT", "per-run", "output mode without it: per-run, per-event"),
    Setting("SESSIONS", "shared", "session store without it: memory, shared"),
    Setting("CANCEL", "bus", "cancel channel without it: bus, none"),
    Setting("BILLING_MODEL", "scripted", "scripted, or the name of an ADK model"),
    Setting("SCRIPTED_MODEL_LATENCY", "0", "seconds each scripted model call takes"),
    Setting("RUN_TIMEOUT", "120", "seconds a run may take"),
    Setting("TURN_WAIT", "60", "seconds a turn waits for the one before it"),
    Setting("BLOCKING_WAIT", "30", "seconds a blocking send waits for its run"),
    Setting("CONSUMPTION_WAIT", "5", "seconds it then waits for its events"),
    Setting(
        "PARKED_TIMEOUT", "300", "seconds a replica keeps a task that awaits input"
    ),
    Setting("SWEEP_INTERVAL", "10", "seconds between two sweeps for stuck tasks"),
    Setting("DRAIN_GRACE", "10", "seconds running work gets after SIGTERM"),
    Setting("BODY_LIMIT", str(8 * 2**20), "bytes a request body may have"),
    Setting("STREAM_LIMIT", str(16 * 2**20), "bytes one event stream may send"),
    Setting("RATE_PER_SECOND", "50", "requests per second and subject"),
    Setting("RATE_BURST", "200", "requests a subject may send at once"),
    Setting(
        "POOL_SIZE", "10", "database connections of one replica's stores, 2 or more"
    ),
)

BASE_DIR = Path(__file__).resolve().parent.parent

_DEFAULTS = {row.name: row.default for row in SETTINGS}


def text(name: str) -> str:
    """Return the value of a declared setting.

    Unset or empty, it is what the demo running on this ``VAR_DIR`` uses, so that
    ``manage.py token`` and the like find it; without one, the default.

    Raises:
        KeyError: the name is not declared in ``SETTINGS``.
    """
    default = _DEFAULTS[name]
    return os.environ.get(name) or _of_running_demo().get(name) or default


def var_dir() -> Path:
    """Return the folder for keys, secrets and embedded data."""
    return Path(os.environ.get("VAR_DIR") or BASE_DIR / "var").resolve()


@cache
def _of_running_demo() -> dict[str, str]:
    from web.demo.running import find_running

    demo = find_running(var_dir())
    return demo.environment if demo else {}


def number(name: str) -> float:
    """Return a declared setting as a number.

    Raises:
        SettingUnusable: the value is no number, or less than 0.
    """
    try:
        value = float(text(name))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise _unusable(name, "a number of 0 or more")
    return value


def flag(name: str) -> bool:
    """Return whether a declared setting is ``1`` or ``true``."""
    return text(name).lower() in {"1", "true"}


def names(name: str) -> list[str]:
    """Return a declared comma-separated setting as a list."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


def pairs(name: str) -> dict[str, str]:
    """Return a declared setting of the form ``name=value,name=value``.

    Raises:
        SettingUnusable: an entry has no name or no value, or there is none.
    """
    found = dict(part.partition("=")[::2] for part in names(name))
    if not found or not all(found) or not all(found.values()):
        raise _unusable(name, "name=address, and more of them after commas")
    return found


def choice(name: str, *known: str) -> str:
    """Return a declared setting that has one of the known values.

    Raises:
        SettingUnusable: the value is another one.
    """
    if text(name) not in known:
        raise _unusable(name, " or ".join(known))
    return text(name)


def _unusable(name: str, wanted: str) -> SettingUnusable:
    return SettingUnusable(f"{name} must be {wanted}, not {text(name)!r}")
