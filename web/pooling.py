"""A bounded number of database connections for the pages of one process."""

from __future__ import annotations

from django.db import connections

SIZE = 10
# Seconds a request waits for a connection; a database that is away is noticed.
WAIT_SECONDS = 5.0


def share_connections() -> None:
    """Let the threads of this process share a few connections.

    Django serves each request of an ASGI application on a thread of its own, with a
    connection of its own: two hundred pages at once would need two hundred. To be
    called before the first query; ``close_shared`` ends it.
    """
    database = connections.databases["default"]
    database["CONN_MAX_AGE"] = 0  # a request gives its connection back
    database["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": SIZE,
        "timeout": WAIT_SECONDS,
    }


def close_shared() -> None:
    """Close the shared connections."""
    connections["default"].close_pool()  # type: ignore[attr-defined]
