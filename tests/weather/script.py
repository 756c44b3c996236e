"""Random scripts: what a few clients do to one subject's tasks, all at once.

A script is plain data, so a failure shows what was done. What the steps hit is up to
the moment: they name tasks by their order, whichever exist by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

Kind = Literal["send", "answer", "repeat", "cancel", "subscribe"]
Mode = Literal["blocking", "now", "stream"]

CONTEXTS = ("ctx-1", "ctx-2")
TEXTS = (
    "audit the last 3 invoices",
    "list my invoices",
    "Why was invoice 8812 higher than last month?",
    "remember that I like short answers",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a client does.

    Args:
        kind: what.
        where: the replica it asks.
        mode: how a message is sent.
        output: the output mode of a send.
        text: what is said; the step's number makes it the only one of its kind.
        context: the conversation of a new task.
        target: which of the tasks, or sends, known at that moment.
        leaves_after: events after which a stream's client leaves; None: it stays.
        pause: seconds before it.
    """

    kind: Kind
    where: Literal["replica-a", "replica-b"]
    mode: Mode
    output: Literal["per-run", "per-event"]
    text: str
    context: str
    target: int
    leaves_after: int | None
    pause: float


Script = tuple[tuple[Step, ...], ...]


def random_script(random: Random) -> Script:
    """Return what two or three clients do, a few steps each."""
    clients = random.randint(2, 3)
    return tuple(
        tuple(
            _step(random, f"{client}-{number}", first=not (client or number))
            for number in range(random.randint(2, 4))
        )
        for client in range(clients)
    )


def _step(random: Random, name: str, first: bool) -> Step:
    kinds = ("send", "answer", "repeat", "cancel", "subscribe")
    (kind,) = random.choices(kinds, (5, 2, 2, 3, 3))
    return Step(
        kind="send" if first else kind,
        where=random.choice(("replica-a", "replica-b")),
        mode=random.choice(("blocking", "now", "stream")),
        output=random.choice(("per-run", "per-event")),
        text=f"{random.choice(TEXTS)} #{name}",
        context=random.choice(CONTEXTS),
        target=random.randrange(8),
        leaves_after=random.choice((None, None, 0, 1, 3)),
        pause=random.choice((0, 0, 0.01, 0.05, 0.15)),
    )
