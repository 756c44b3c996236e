"""Free ports for the processes that tests start."""

from __future__ import annotations

import secrets
import socket

from web.demo.layout import Layout


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def free_port_base() -> int:
    """Return a port base whose every port is free."""
    while True:
        base = secrets.choice(range(20000, 30000, 100))
        if Layout(base).free():
            return base
