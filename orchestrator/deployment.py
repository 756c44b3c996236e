"""Where the billing agent, its issuer and the database of runs are."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Deployment:
    """The addresses and credentials the orchestrator works with.

    Args:
        database: libpq connection string of the runs.
        public_url: the router, where the agent card is.
        issuer: OAuth 2 issuer of access tokens.
        client_id: the orchestrator's own client there.
        client_secret: its secret.
        replicas: address of each replica by name, for its ledger.
    """

    database: str = field(repr=False)
    public_url: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    replicas: Mapping[str, str]


_chosen: ContextVar[Deployment | None] = ContextVar("deployment", default=None)


def current() -> Deployment:
    """Return the deployment in use: the one of ``using``, else of the settings."""
    return _chosen.get() or from_settings()


def from_settings() -> Deployment:
    """Return the deployment that the Django settings describe."""
    return Deployment(
        database=_conninfo(),
        public_url=settings.PUBLIC_URL,
        issuer=settings.OIDC_ISSUER,
        client_id=settings.OIDC_CLIENT_ID,
        client_secret=settings.OIDC_CLIENT_SECRET,
        replicas=settings.REPLICAS,
    )


@contextmanager
def using(deployment: Deployment) -> Iterator[None]:
    """Work with another deployment than that of the settings, for a command."""
    token = _chosen.set(deployment)
    try:
        yield
    finally:
        _chosen.reset(token)


def _conninfo() -> str:
    """Translate Django's default database into a libpq connection string."""
    django = connection.settings_dict
    names = {
        "NAME": "dbname",
        "USER": "user",
        "PASSWORD": "password",
        "HOST": "host",
        "PORT": "port",
    }
    given = {ours: django[name] for name, ours in names.items() if django[name]}
    # Django's own pool is no matter of libpq.
    options = {
        name: value for name, value in django["OPTIONS"].items() if name != "pool"
    }
    return make_conninfo(**given, **options)
