"""Tells open pages that their run has a new event, wherever it was recorded."""

from __future__ import annotations

import asyncio
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

from billing_agent.stores.bus import Bus
from orchestrator.runs import CHANNEL

GROUP_PREFIX = "run."
# Events of a burst within this many seconds are told together: once here, not once
# for every page behind the channel layer.
COALESCE_SECONDS = 0.03


class Live:
    """Passes notifications of the database on to this process's channel layer.

    A payload ``<run id>:<seq>`` becomes ``{"type": "run.event", "seq": seq}`` for
    the group ``run.<run id>``; of a burst only the newest does. After a gap, when
    notifications may have been missed, every group with a member gets
    ``{"type": "run.gap"}``.

    Args:
        conninfo: PostgreSQL URL of the recorded runs.
    """

    def __init__(self, conninfo: str) -> None:
        self._bus = Bus(conninfo)
        # One queue and one sender: events of a run stay in order.
        self._messages: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self._newest: dict[str, int] = {}

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            psycopg.OperationalError: the database cannot be reached.
        """
        self._bus.subscribe(CHANNEL, self._on_payload, self._on_gap)
        await self._bus.start()
        self._sender = asyncio.create_task(self._send_on())

    async def stop(self) -> None:
        """Stop listening."""
        await self._bus.stop()
        if self._sender is not None:
            self._sender.cancel()

    def _on_payload(self, payload: str) -> None:
        run_id, _, seq = payload.rpartition(":")
        if run_id not in self._newest:
            loop = asyncio.get_running_loop()
            loop.call_later(COALESCE_SECONDS, self._tell, run_id)
        self._newest[run_id] = max(int(seq), self._newest.get(run_id, 0))

    def _tell(self, run_id: str) -> None:
        message = {"type": "run.event", "seq": self._newest.pop(run_id)}
        self._messages.put_nowait((GROUP_PREFIX + run_id, message))

    def _on_gap(self) -> None:
        for group in _groups():
            self._messages.put_nowait((group, {"type": "run.gap"}))

    async def _send_on(self) -> None:
        layer = get_channel_layer()
        while True:
            group, message = await self._messages.get()
            await layer.group_send(group, message)


def _groups() -> list[str]:
    """Return the runs somebody looks at in this process."""
    layer = get_channel_layer()
    if not isinstance(layer, InMemoryChannelLayer):
        raise TypeError("Live passes events on within one process only")
    return [name for name in layer.groups if name.startswith(GROUP_PREFIX)]
