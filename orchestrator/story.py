"""The story: two messages (or three) of one conversation, sent and recorded."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator import client, lease, runs
from orchestrator.client import Call
from orchestrator.conversation import pending_question
from orchestrator.errors import (
    OrchestratorError,
    StepFailed,
    StreamBroken,
    TaskFailed,
)
from orchestrator.events import ANSWER, FAILED, QUESTION, Kind
from orchestrator.fold import fold
from orchestrator.sentences import Phrase, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration
    from orchestrator.events import Event
    from orchestrator.frames import Frame
    from orchestrator.models import Run

logger = logging.getLogger(__name__)

ORCHESTRATOR = "orchestrator"
TURNS = {
    1: "Why was invoice 8812 higher than last month?",
    2: "The compute line.",
    3: "And the storage line?",
}


async def play(configuration: Configuration) -> Run:
    """Play the story's two turns in a new run and return it.

    Raises:
        StepFailed: a turn could not be played; the run keeps what happened.
    """
    run = await runs.create(configuration)
    for turn in (1, 2):
        await send_turn(run, turn)
    return await runs.get(run.id)


async def send_turn(run: Run, turn: int | None = None) -> bool:
    """Send a turn of the story and record it to its end.

    Args:
        run: the run it belongs to.
        turn: which one; the one that is next when left out. A turn that failed is
            the next one again.

    Returns:
        Whether it was sent: not when somebody else is sending it or has sent it.

    Raises:
        StepFailed: it could not be played. That is recorded, and it may be sent
            again.
    """
    events = await runs.read(run.id)
    turn = turn or fold(events, run.configuration).next_turn
    if turn not in TURNS or not await runs.claim_turn(run.id, turn):
        return False
    try:
        async with lease.kept(run.id):
            await _converse(run, _call(run, turn, events))
    except (Exception, asyncio.CancelledError) as error:
        await _fail(run, turn, error)
    return True


def _call(run: Run, turn: int, events: Sequence[Event]) -> Call:
    """Return the message of a turn: it answers the question asked before it, if any.

    A send whose fate is unknown goes out under the same message id, so that the
    agent does not run it twice. One whose task ended badly is a new message to a
    new task: a task that has ended takes no more (A2A 1.0, 3.4.2).
    """
    earlier = [event for event in events if event.turn < turn]
    question = pending_question(earlier)
    ended = sum(
        event.turn == turn and event.data.get("state") in FAILED
        for event in events
        if event.kind is Kind.EVENT_RECEIVED
    )
    return Call(
        subject=run.subject,
        tenant=run.tenant,
        context_id=question.context_id if question else run.context_id,
        task_id=question.task_id if question and not ended else "",
        message_id=f"{run.id}-{turn}" + (f"-{ended + 1}" if ended else ""),
        text=TURNS[turn],
        configuration=run.configuration,
    )


async def _converse(run: Run, call: Call) -> None:
    """Send, record the answer, read the ledger, and say that the turn ended."""
    began = time.monotonic()
    rest = _at_rest(await _answered(run, call))
    took = round((time.monotonic() - began) * 1000)
    ledger = await client.shared().ledger(call.subject, call.tenant)
    found = {"stores": ledger.stores, "unread": ledger.unread}
    await runs.append(run.id, ORCHESTRATOR, Kind.LEDGER_READ, found)
    ended = {
        "state": rest.state,
        "replica": rest.replica,
        "task_id": rest.task_id,
        "context_id": rest.context_id,
        "duration_ms": took,
    }
    await runs.append(run.id, ORCHESTRATOR, Kind.TURN_ENDED, ended)


async def _answered(run: Run, call: Call) -> Frame | None:
    """Send and record every frame; return the last that brought a state."""

    async def sending(request: dict[str, Any]) -> None:
        data = {
            "text": call.text,
            "context_id": call.context_id,
            "task_id": call.task_id,
            "message_id": call.message_id,
            "request": request,
        }
        await runs.append(run.id, ORCHESTRATOR, Kind.MESSAGE_SENT, data)

    last: Frame | None = None
    async with aclosing(client.shared().stream(call, sending)) as answer:
        async for frame in answer:
            data = frame.as_data()
            await runs.append(run.id, ORCHESTRATOR, Kind.EVENT_RECEIVED, data)
            last = frame if frame.state else last
    return last


def _at_rest(last: Frame | None) -> Frame:
    """Return the last state an answer brought, if the story can go on from there."""
    if last is None:
        raise StreamBroken("the stream ended before a task came")
    if last.state in FAILED:
        raise TaskFailed(last.state, last.text)
    if last.state not in {QUESTION, ANSWER}:
        raise StreamBroken(f"the stream ended in {last.state}")
    return last


async def _fail(run: Run, turn: int, error: BaseException) -> NoReturn:
    """Record that a turn failed: a safe sentence for people, the rest for the log."""
    error_id = secrets.token_hex(6)
    reason = _logged(run, turn, error, error_id)
    data = {
        "reason": reason,
        "sentence": sentence(Phrase(reason)),
        "error_id": error_id,
    }
    try:
        await runs.append(run.id, ORCHESTRATOR, Kind.STEP_FAILED, data)
    except Exception:
        # The turn may be sent again all the same, once it has been silent for long.
        logger.exception("Failure not recorded [error_id=%s]", error_id)
    if isinstance(error, asyncio.CancelledError):
        raise error
    raise StepFailed(run.id, turn, reason, error_id) from error


def _logged(run: Run, turn: int, error: BaseException, error_id: str) -> str:
    """Log why a turn failed; return the id of the sentence for people."""
    turn_of = f"Run {run.id}, turn {turn}"
    if isinstance(error, asyncio.CancelledError):
        logger.warning("%s was stopped [error_id=%s]", turn_of, error_id)
        return "failed.stopped"
    logger.error("%s failed [error_id=%s]", turn_of, error_id, exc_info=error)
    reason: str = getattr(error, "reason", OrchestratorError.reason)
    return reason
