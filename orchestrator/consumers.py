"""The live side of a page: one socket, which sends the parts that changed."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils.html import format_html

from orchestrator import health, parts, sending, snapshots, visitors
from orchestrator.errors import RunUnknown
from orchestrator.fold import fold
from orchestrator.page import (
    LAST_STEP,
    Place,
    canonical,
    next_event,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from orchestrator.snapshots import Snapshot

logger = logging.getLogger(__name__)
# How often a page is compared with the clock and the health of the parts.
TICK_SECONDS = 1.0
TRY_AGAIN = 1013
_ERROR = '<div id="socket-error" hx-swap-oob="true" hidden data-error="{}"></div>'


class RunConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Follows one run from the place its page names.

    Upwards: ``{"do": "goto", "step": 4, "seq": 24, "have": mark}`` says where the
    page stands (``seq`` null: at the step's newest event) and what it shows;
    ``{"do": "next"}`` goes an event on, or sends the next turn. ``run`` may name the
    run meant. Anything else is answered with one typed error and has no effect.

    Downwards: fragments for htmx to swap, ``#cursor`` always the first of them.
    """

    async def connect(self) -> None:
        """Accept the page of a known run; it says where it stands by ``goto``."""
        self.run_id: str = self.scope["url_route"]["kwargs"]["run_id"]
        self.place: Place | None = None
        self.shown: dict[str, str] = {}
        self.pushing: asyncio.Task[None] | None = None
        self.ticking: asyncio.Task[None] | None = None
        await self.channel_layer.group_add(f"run.{self.run_id}", self.channel_name)
        try:
            # Nobody listened before: what is kept of the run may be old.
            seen = await snapshots.shared().fresh(self.run_id)
        except RunUnknown:
            await self.close()
            return
        self.newest = self.pushed = seen.seq
        self.owner = visitors.owns(visitors.of_scope(self.scope), seen.run)
        await self.accept()
        self.ticking = asyncio.create_task(self._guarded(self._tick()))

    async def disconnect(self, code: int) -> None:
        """Leave nothing behind."""
        await self.channel_layer.group_discard(f"run.{self.run_id}", self.channel_name)
        for task in (self.pushing, self.ticking):
            if task is not None:
                task.cancel()

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Do what a page asks, or answer with one typed error."""
        error = await self._obey(_message(text_data))
        if error:
            await self.send(format_html(_ERROR, error))

    async def run_event(self, message: dict[str, Any]) -> None:
        """Hear that the run has a new event."""
        self.newest = max(self.newest, message["seq"])
        if self.pushing is None or self.pushing.done():
            self.pushing = asyncio.create_task(self._guarded(self._catch_up()))

    async def run_gap(self, message: dict[str, Any]) -> None:
        """Hear that events may have gone unheard: look."""
        fresh = await snapshots.shared().fresh(self.run_id)
        await self.run_event({"seq": fresh.seq})

    async def _obey(self, message: dict[str, Any]) -> str:
        """Carry out a message; return the type of its error, empty when it has none."""
        if message.get("run", self.run_id) != self.run_id:
            return "foreign-run"
        if message.get("do") == "goto":
            return await self._goto(message)
        if message.get("do") == "next":
            return await self._next() if self.owner else "not-yours"
        return "unknown-message"

    async def _goto(self, message: dict[str, Any]) -> str:
        step, seq = message.get("step", 0), message.get("seq")
        if type(step) is not int or not 0 <= step <= LAST_STEP:
            return "unknown-place"
        if seq is not None and type(seq) is not int:
            return "unknown-place"
        seen = await self._seen()
        recorded = fold(seen.events, seen.run.configuration)
        self.place = canonical(Place(step, seq), recorded)
        self.shown = {}
        sight = parts.sight(seen, self.place, self.owner, health.latest())
        if message.get("have") == parts.mark(seen, sight):
            self.shown = dict(parts.render(seen, sight))
        await self._push()
        return ""

    async def _next(self) -> str:
        seen = await self._seen()
        claimed = sending.turn_on_its_way(seen.run)
        place = self.place or Place(0)
        move = next_event(view(seen.events, seen.run.configuration, place, claimed))
        if move.turn:
            sending.start(seen.run, move.turn)
        self.place = move.after_sending().place or place
        await self._push()
        return ""

    async def _seen(self) -> Snapshot:
        return await snapshots.shared().at_least(self.run_id, self.newest)

    async def _catch_up(self) -> None:
        while self.pushed < self.newest:
            await self._push()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await health.read()
            await self._push()

    async def _push(self) -> None:
        """Send the parts that differ from what the page shows."""
        seen = await self._seen()
        self.pushed = seen.seq
        if self.place is None:
            return
        sight = parts.sight(seen, self.place, self.owner, health.latest())
        coming = parts.render(seen, sight)
        changed = [
            html for name, html in coming.items() if self.shown.get(name) != html
        ]
        self.shown = dict(coming)
        if changed:
            first = [] if changed[0] is coming["cursor"] else [coming["cursor"]]
            await self.send("".join(first + changed))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Close on a failure, so that the page comes back instead of going blind."""
        try:
            await work
        except Exception as error:
            logger.warning("Socket of %s closed: %r", self.run_id, error)
            await self.close(TRY_AGAIN)


def _message(text: str | None) -> dict[str, Any]:
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
