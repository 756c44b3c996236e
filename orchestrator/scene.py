"""What a page shows at one event of a run, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.config import Configuration
    from orchestrator.events import Kind
    from orchestrator.sentences import Phrase


class Shape(StrEnum):
    """How a part is drawn besides its colour."""

    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"
    DIAMOND = "diamond"
    HEXAGON = "hexagon"


class Progress(StrEnum):
    """Where a step stands at the cursor."""

    DONE = "done"
    CURRENT = "current"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the story: ``orchestrator``, ``router``, ``replica-a``.

    ``letter`` is ``"A"`` for ``replica-a`` and empty for what is no replica.
    """

    name: str
    letter: str
    shape: Shape


def part(name: str) -> Part:
    """Return the part of this name with its letter and shape."""
    if name == "orchestrator":
        return Part(name, "", Shape.DIAMOND)
    if not name.startswith("replica-"):
        return Part(name, "", Shape.HEXAGON)
    letter = name.removeprefix("replica-").upper()
    shapes = {"A": Shape.CIRCLE, "B": Shape.SQUARE}
    return Part(name, letter, shapes.get(letter, Shape.TRIANGLE))


@dataclass(frozen=True, slots=True)
class Step:
    """One of the six steps; ``events`` counts those folded so far.

    ``last_seq`` is the cursor that shows the step complete as far as recorded: its
    newest event, or that of the nearest earlier step that has one (0 for none).
    """

    number: int
    progress: Progress
    events: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the event list; ``wire`` is the protocol's own name, if any.

    ``source`` and ``target`` are names of ``Topology.nodes``; equal when the event
    stays inside one part.
    """

    seq: int
    at: datetime
    turn: int
    step: int
    kind: Kind
    part: Part
    source: str
    target: str
    phrase: Phrase
    wire: str


@dataclass(frozen=True, slots=True)
class Bubble:
    """One message of the conversation.

    Args:
        seq: the newest event that shaped it; ``first_seq`` the one that began it.
        who: ``"orchestrator"`` or ``"agent"``.
        replica: the replica that spoke; None for the orchestrator.
        text: its text parts, one a line.
        data: its data parts.
        state: ``"sent"`` or ``"delivered"`` for the orchestrator's messages,
            ``"question"``, ``"intermediate"``, ``"answer"`` or ``"failure"`` for the
            agent's.
    """

    seq: int
    first_seq: int
    turn: int
    who: str
    replica: Part | None
    text: str
    data: tuple[dict[str, Any], ...]
    state: str


@dataclass(frozen=True, slots=True)
class HeldSession:
    """One session a store was found to hold."""

    user: str
    session_id: str
    events: int


@dataclass(frozen=True, slots=True)
class HeldStore:
    """One store as the ledger last read it.

    ``replica`` is None for the shared store. ``read`` is False when the replica did
    not answer: then nothing is known of it.
    """

    store: str
    replica: Part | None
    sessions: tuple[HeldSession, ...]
    read: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a turn asked its store for first, and the name the session then had.

    ``stored_as`` is the id of the session the turn went on with; empty while that
    is open. It differs from ``asked_for`` when the lookup missed and the session
    was created under a generated id.
    """

    turn: int
    replica: Part
    store: str
    asked_for: str
    found: bool
    events: int
    stored_as: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the agent was shown at its latest model call.

    ``elsewhere`` is what other sessions held and it did not have here: what it was
    shown there last, and the tools it called upon that.
    """

    turn: int
    replica: Part
    call: int
    session_id: str
    events: int
    lines: tuple[str, ...]
    elsewhere: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as the caller holds it: its chunks put together."""

    artifact_id: str
    texts: tuple[str, ...]
    data: tuple[dict[str, Any], ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Released:
    """What left the building in one turn, measured where it arrived.

    Args:
        artifacts: in order of arrival, folded by id.
        intermediate: texts that are neither in the final artifact nor the question.
        size: bytes of the frames that carried artifacts and intermediate texts.
    """

    turn: int
    artifacts: tuple[Artifact, ...]
    intermediate: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Question:
    """The question the agent waits on."""

    turn: int
    task_id: str
    context_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed and was not retried yet: safe to show as it is."""

    turn: int
    phrase: Phrase
    error_id: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A turn that was sent and has not ended; ``replica`` once it is chosen."""

    turn: int
    replica: Part | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Node:
    """A drawn part; replicas show the ids of the sessions they hold."""

    name: str
    letter: str
    shape: Shape
    lit: bool
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A drawn line; lit while the current event travels on it."""

    source: str
    target: str
    lit: bool


@dataclass(frozen=True, slots=True)
class Topology:
    """The parts and lines, lit for the current event."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a page shows at event ``cursor`` (0: before the first).

    Args:
        ledger: what the stores hold as last read; None before the first reading.
        lookups: one a turn, oldest first.
        released: one for each turn that was sent, oldest first.
        tenant: what the filter stamped last; empty before.
        next_turn: the turn that may be sent now (a failed one again); None while
            one is on its way and after the third.
    """

    configuration: Configuration
    cursor: int
    context_id: str
    step: int
    steps: tuple[Step, ...]
    rows: tuple[Row, ...]
    bubbles: tuple[Bubble, ...]
    topology: Topology
    ledger: tuple[HeldStore, ...] | None
    lookups: tuple[Lookup, ...]
    seen: Seen | None
    released: tuple[Released, ...]
    tenant: str
    pending: Question | None
    failure: Failure | None
    waiting: Waiting | None
    next_turn: int | None
