"""A bounded number of database connections for Django in one process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connections
from psycopg import OperationalError

from billing_agent.serving import CannotServe

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 10
# Seconds a request waits for a connection; a database that is away is noticed.
WAIT_SECONDS = 5.0


@contextmanager
def shared_connections(size: int = SIZE) -> Iterator[None]:
    """Let the threads of this process share a few connections.

    Django serves each request of an ASGI application on a thread of its own, with a
    connection of its own: two hundred pages at once would need two hundred. To be
    entered before the first query.

    Args:
        size: connections at most.

    Raises:
        CannotServe: no database is named.
    """
    if not settings.DATABASE_URL:
        raise CannotServe("DATABASE_URL is not set")
    database = connections.databases["default"]
    database["CONN_MAX_AGE"] = 0  # a request gives its connection back
    database["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": size,
        "timeout": WAIT_SECONDS,
    }
    try:
        yield
    finally:
        connections["default"].close_pool()  # type: ignore[attr-defined]


@contextmanager
def database_reached() -> Iterator[None]:
    """Say it in one line when connecting to the database fails.

    Raises:
        CannotServe: it did.
    """
    try:
        yield
    except OperationalError:
        raise CannotServe("the database of DATABASE_URL cannot be reached") from None
