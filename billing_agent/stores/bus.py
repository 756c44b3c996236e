"""The bus between replicas: LISTEN and NOTIFY on one dedicated connection."""

from __future__ import annotations

from collections.abc import Callable


class Bus:
    """Delivers PostgreSQL notifications to subscribers of this process.

    Nothing is polled. While the connection is down notifications are missed, so every
    subscriber's ``on_gap`` is called when it is back, and once when a channel's first
    LISTEN has taken effect: that is the moment to read the tables.

    Args:
        conninfo: PostgreSQL URL or connection string.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    @property
    def connected(self) -> bool:
        """Whether notifications arrive at this moment."""
        raise NotImplementedError

    async def start(self) -> None:
        """Connect; from then on the bus reconnects by itself.

        Raises:
            psycopg.OperationalError: the first connection failed.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Close the connection; nothing is delivered any more."""
        raise NotImplementedError

    def subscribe(
        self,
        channel: str,
        on_payload: Callable[[str], None],
        on_gap: Callable[[], None] | None = None,
    ) -> Callable[[], None]:
        """Call ``on_payload`` for every notification of a channel.

        May be called before ``start``.

        Returns:
            A function that ends the subscription.
        """
        raise NotImplementedError

    async def notify(self, channel: str, payload: str) -> None:
        """Send a notification to every process that listens, this one included.

        Raises:
            ValueError: the payload has 8000 bytes or more (PostgreSQL's limit).
            psycopg.OperationalError: the bus is not connected.
        """
        raise NotImplementedError
