"""Django's ORM off the event loop, on a few threads with a connection each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async
from django.db import connection

P = ParamSpec("P")
R = TypeVar("R")

# Each thread keeps one connection; CONN_HEALTH_CHECKS replaces a broken one.
THREADS = 4

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="invoices")


async def in_database(query: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a synchronous query on one of the threads and return its result.

    A caller that is cancelled stops waiting at once; the query itself ends by its
    own.
    """
    run = database_sync_to_async(query, thread_sensitive=False, executor=_threads)
    result: R = await run(*args, **kwargs)
    return result


def close_connections() -> None:
    """Close every thread's connection; the next query opens a new one."""
    together = Barrier(THREADS)

    def close() -> None:
        connection.close()
        together.wait()

    for done in [_threads.submit(close) for _ in range(THREADS)]:
        done.result()
