"""Daphne's server with a start, a drain and an end that can be relied on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":  # what Twisted's asyncio reactor and psycopg need
    asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server, twisted_loop
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from starlette.types import ASGIApp

Step = Callable[[], Awaitable[None]]

logger = logging.getLogger(__name__)

# Connections that wait to be accepted; Twisted's 50 breaks some of a crowd's.
BACKLOG = 1024
# Seconds an application gets to end after it was cancelled.
CLOSE_SECONDS = 2.0


class DrainingServer(Server):  # type: ignore[misc]
    """One Daphne server on Twisted's asyncio reactor, for the life of a process.

    No HTTP timeout is ever set: Daphne's ends an event stream as if it were
    complete.
    """

    def __init__(
        self,
        application: ASGIApp,
        *,
        port: int,
        host: str,
        startup: Step | None,
        shutdown: Step | None,
        abandon_after: float,
    ) -> None:
        super().__init__(
            application,
            endpoints=[
                f"{endpoint}:backlog={BACKLOG}"
                for endpoint in build_endpoint_description_strings(host=host, port=port)
            ],
            signal_handlers=False,
            application_close_timeout=abandon_after,
            ready_callable=self._announce,
        )
        self._startup = startup
        self._shutdown = shutdown
        self._ending: asyncio.Task[None] | None = None

    def serve(self) -> bool:
        """Run to the end; return False when the port could not be listened on."""
        try:
            if self._startup is not None:
                twisted_loop.run_until_complete(self._startup())
            self._catch_signals()
            self.run()
        finally:
            _cancel_leftovers(twisted_loop)
        if self._ending is not None and not self._ending.cancelled():
            self._ending.result()
        return not self.abort_start

    def stop_soon(self) -> None:
        """Drain, then stop; asked again, stop at once."""
        if self._ending is None:
            self._ending = twisted_loop.create_task(self._end())
        else:
            self._ending.cancel()

    async def _end(self) -> None:
        try:
            if self._shutdown is not None:
                await self._shutdown()
        finally:
            self.stop()

    def kill_all_applications(self) -> Deferred[Any] | None:
        """Cancel every running application and wait for them, within a bound.

        Daphne's own (4.2) raises KeyError, and cancels nothing, when one
        connection has no application: half a request, or one already answered.
        """
        running = [
            application
            for details in self.connections.values()
            if (application := details.get("application_instance")) is not None
            and not application.done()
        ]
        for application in running:
            application.cancel()
        return Deferred.fromCoroutine(_wait(running)) if running else None

    def _catch_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                twisted_loop.add_signal_handler(number, self.stop_soon)
            except NotImplementedError:  # Windows
                signal.signal(
                    number,
                    lambda *_: twisted_loop.call_soon_threadsafe(self.stop_soon),
                )

    def _announce(self) -> None:
        gc.freeze()  # what was imported stays: no collection need look at it
        for host, port in self.listening_addresses:
            print(f"ready http://{host}:{port}/", flush=True)


async def _wait(tasks: list[asyncio.Task[None]]) -> None:
    future = asyncio.ensure_future(asyncio.wait(tasks, timeout=CLOSE_SECONDS))
    _, stubborn = await Deferred.fromFuture(future)
    for task in stubborn:
        logger.warning("still running at exit: %r", task)


def _cancel_leftovers(loop: asyncio.AbstractEventLoop) -> None:
    """End the loop's remaining tasks and generators, as ``asyncio.run`` does."""
    leftovers = asyncio.all_tasks(loop)
    for task in leftovers:
        task.cancel()
    if leftovers:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(asyncio.wait(leftovers, timeout=CLOSE_SECONDS))
    loop.run_until_complete(loop.shutdown_asyncgens())
