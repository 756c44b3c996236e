"""Serve one ASGI application with Daphne, from a free port to a clean exit."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from typing import TYPE_CHECKING

from django.conf import settings

from billing_agent.errors import BillingError, shown_to_callers

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from billing_agent._daphne import Step

# What Windows answers for a port held exclusively by somebody else.
_TAKEN = (
    {errno.EADDRINUSE, errno.EACCES} if sys.platform == "win32" else {errno.EADDRINUSE}
)


class CannotServe(BillingError):
    """A process must not or cannot listen; the message is one line for a person."""


class Exposed(CannotServe):
    """The process would give away, on ``host``, what is meant for one machine."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"not on {host}, which others can reach: {reason}")
        self.host = host


class PortTaken(CannotServe):
    """Another process listens on the port; ``option`` is how to choose another."""

    def __init__(self, port: int, option: str = "--port") -> None:
        super().__init__(f"port {port} is taken; choose another with {option}")
        self.port = port
        self.option = option


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(host: str) -> None:
    """Make sure that no exception would be shown to other machines.

    Raises:
        Exposed: ``DEBUG`` or ``ADK_DEBUG_ERRORS`` is on, and ``host`` no loopback
            address.
    """
    if is_loopback(host):
        return
    if shown_to_callers():
        raise Exposed(host, "ADK_DEBUG_ERRORS shows exceptions to callers")
    if settings.DEBUG:
        raise Exposed(host, "DEBUG shows code and settings on every error page")


def check_port(port: int, host: str = "127.0.0.1", option: str = "--port") -> None:
    """Make sure that nothing listens on a port.

    Raises:
        PortTaken: something does; the message names the port and ``option``.
        OSError: the address cannot be bound for another reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform == "win32":  # where SO_REUSEADDR would share a port in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in _TAKEN:
                raise PortTaken(port, option) from None
            raise


def serve(
    application: ASGIApp,
    *,
    port: int,
    host: str = "127.0.0.1",
    startup: Step | None = None,
    shutdown: Step | None = None,
    abandon_after: float = 10,
) -> None:
    """Serve until SIGTERM or SIGINT, then return.

    Daphne sends no ASGI lifespan events; ``startup`` and ``shutdown`` stand for
    them. A second signal cuts ``shutdown`` short.

    Args:
        application: the ASGI application, HTTP and WebSocket.
        port: TCP port; 0 takes a free one.
        host: address to listen on.
        startup: awaited, on the serving loop, before the port accepts connections.
        shutdown: awaited after the signal while requests are still answered, so
            that running work can be drained; what runs after it is cancelled.
        abandon_after: seconds a handler may go on after its client left.

    Raises:
        Exposed: see ``check_exposure``; before ``startup`` ran.
        PortTaken: before ``startup`` ran.
    """
    check_exposure(host)
    check_port(port, host)
    # Importing Daphne installs a Twisted reactor: only for a process that serves.
    from billing_agent._daphne import DrainingServer

    server = DrainingServer(
        application,
        port=port,
        host=host,
        startup=startup,
        shutdown=shutdown,
        abandon_after=abandon_after,
    )
    if not server.serve():
        raise PortTaken(port)
