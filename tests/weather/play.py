"""Plays a script on both replicas and keeps what its clients were told."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.peer import Peer, Refused, state
from tests.weather.script import Script, Step

# What a client may be told of a task that has moved on: no such task (yet), not
# cancelable any more, no more messages taken.
EXPECTED = {-32001, -32002, -32004}


# Whether it came with a send, and its events.
Stream = tuple[bool, list[dict[str, Any]]]

# Seconds.
LONGEST_STEP = 20


@dataclass
class Sent:
    """A send as it was made, and the task that was acknowledged for it."""

    text: str
    options: dict[str, Any]
    task_id: str | None = None


@dataclass
class Played:
    """What became of a script."""

    script: Script
    subject: str
    sent: list[Sent] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


async def play(script: Script, peers: dict[str, Peer], subject: str) -> Played:
    """Let every client of a script take its steps; return what they were told."""
    played = Played(script, subject)
    clients = (Client(peers, played).take(steps) for steps in script)
    await asyncio.gather(*clients)
    return played


class Client:
    """One client; it knows of the tasks and sends of all of them."""

    def __init__(self, peers: dict[str, Peer], played: Played) -> None:
        self._peers = peers
        self._played = played

    async def take(self, steps: tuple[Step, ...]) -> None:
        """Take the steps, one after the other."""
        for step in steps:
            await asyncio.sleep(step.pause)
            try:
                await getattr(self, f"_{step.kind}")(step, self._peers[step.where])
            except Refused as refused:
                if refused.code not in EXPECTED:
                    self._played.faults.append(f"{step}: {refused}")

    async def _send(self, step: Step, peer: Peer) -> None:
        options = {"context_id": step.context, "output": step.output}
        await self._say(step, peer, Sent(step.text, options))

    async def _answer(self, step: Step, peer: Peer) -> None:
        if self._played.tasks:
            task_id = _pick(self._played.tasks, step)
            text = f"The compute line. {step.text.partition('#')[2]}"
            options = {"task_id": task_id, "output": step.output}
            await self._say(step, peer, Sent(f"#{text}", options))

    async def _repeat(self, step: Step, peer: Peer) -> None:
        if self._played.sent:
            await self._say(step, peer, _pick(self._played.sent, step))

    async def _cancel(self, step: Step, peer: Peer) -> None:
        if self._played.tasks:
            task_id = _pick(self._played.tasks, step)
            # One that came too late gets the task as it ended.
            if state(await peer.cancel(task_id)) == "CANCELED":
                self._played.canceled.append(task_id)

    async def _subscribe(self, step: Step, peer: Peer) -> None:
        if self._played.tasks:
            async with peer.subscribe(_pick(self._played.tasks, step)) as events:
                await self._follow(events, step)

    async def _say(self, step: Step, peer: Peer, sent: Sent) -> None:
        if sent not in self._played.sent:
            sent.options["message_id"] = secrets.token_hex(8)
            self._played.sent.append(sent)
        if step.mode == "stream":
            async with peer.stream(sent.text, **sent.options) as events:
                await self._follow(events, step, sent)
        elif step.mode == "blocking" and step.leaves_after == 0:
            await self._leave_early(peer.send(sent.text, **sent.options), sent)
        else:
            now = step.mode == "now"
            task = await peer.send(sent.text, **sent.options, now=now)
            self._acknowledge(sent, task["id"])

    async def _leave_early(self, call: Any, sent: Sent) -> None:
        """Give up on a blocking send while it waits."""
        sending = asyncio.ensure_future(call)
        await asyncio.wait({sending}, timeout=0.05)
        if sending.done():
            self._acknowledge(sent, (await sending)["id"])
        sending.cancel()

    async def _follow(self, events: Any, step: Step, sent: Sent | None = None) -> None:
        """Read a stream to its end, or until the client leaves it."""
        seen: list[dict[str, Any]] = []
        self._played.streams.append((sent is not None, seen))
        reading = aiter(events)
        while (event := await self._next(reading, seen)) is not None:
            seen.append(event)
            if sent is not None:
                self._acknowledge(sent, task_of(event))
            if step.leaves_after is not None and len(seen) > step.leaves_after:
                return

    async def _next(self, events: Any, seen: list[dict[str, Any]]) -> Any:
        """Return the next event; None at the end.

        A subscriber of a question sees nothing until somebody answers it: it leaves.
        """
        asks = bool(seen) and state_of(seen[-1]) == "INPUT_REQUIRED"
        try:
            async with asyncio.timeout(0.2 if asks else LONGEST_STEP):
                return await anext(events, None)
        except TimeoutError:
            if not asks:
                self._played.faults.append(f"a stream that does not go on: {seen}")
            return None

    def _acknowledge(self, sent: Sent, task_id: str) -> None:
        if sent.task_id not in (None, task_id):
            self._played.faults.append(f"two tasks for one send: {sent}, {task_id}")
        sent.task_id = task_id
        if task_id not in self._played.tasks:
            self._played.tasks.append(task_id)


def task_of(event: dict[str, Any]) -> str:
    """Return the id of the task that a stream's event is about."""
    ((kind, body),) = event.items()
    return body["id"] if kind == "task" else body["taskId"]


def state_of(event: dict[str, Any]) -> str | None:
    """Return the state that an event tells of, if it does.

    A question that was answered leaves its state behind until the run begins.
    """
    ((_, body),) = event.items()
    status = body.get("status", {})
    name = status.get("state", "").removeprefix("TASK_STATE_")
    answered = name == "INPUT_REQUIRED" and "message" not in status
    return None if answered else name or None


def _pick(known: list[Any], step: Step) -> Any:
    return known[step.target % len(known)]
