"""Facts: what just happened in this process, announced to whoever listens.

Nothing in the billing agent reads them back. With no receiver connected an
announcement costs one attribute lookup. Receivers are awaited before the process
acts further, so the order in which they commit is the causal order.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from django.dispatch import Signal

announced = Signal()

Store = Literal["memory", "shared"]
Finder = Literal["hook", "lookup"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from: who asked, about what, and which part speaks.

    ``part`` is ``"router"`` or a replica's name; ``task_id`` may be empty before a
    task exists.
    """

    part: str
    subject: str
    context_id: str = ""
    task_id: str = ""


origin: ContextVar[Origin | None] = ContextVar("fact_origin", default=None)


@dataclass(frozen=True, slots=True)
class CallerVerified:
    """The filter accepted a token and stamped the tenant into the metadata."""

    tenant: str
    metadata_before: dict[str, Any]
    metadata_after: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaChosen:
    """The router chose a replica; ``scores`` are hex digests by replica name."""

    replica: str
    reason: str
    affinity: bool
    scores: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionLookedUp:
    """A session was asked for by id.

    ``events`` is how many it held; the hook asks whether there is one, no more, so
    there it is None.
    """

    store: Store
    asked_for: str
    found: bool
    events: int | None
    by: Finder


@dataclass(frozen=True, slots=True)
class SessionCreated:
    """A session was created under ``session_id``."""

    store: Store
    session_id: str
    by: Finder


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """The model is about to be called.

    ``call`` counts from 1 within the run; ``events_seen`` is the number of events
    its session holds; ``seen`` has one short line for each of them.
    """

    call: int
    session_id: str
    events_seen: int
    seen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool is about to run for ``tenant`` (empty when no tenant is verified)."""

    tool: str
    arguments: dict[str, Any]
    tenant: str


@dataclass(frozen=True, slots=True)
class TaskStateChanged:
    """The executor moves the task to ``state`` (a protocol name)."""

    state: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactReleased:
    """An artifact, or a chunk of one, leaves for the caller."""

    artifact_id: str
    append: bool
    last_chunk: bool
    texts: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class CancelHeard:
    """This replica heard a cancel for a task it runs and stopped it."""

    through: Literal["request", "channel"]


Fact = (
    CallerVerified
    | ReplicaChosen
    | SessionLookedUp
    | SessionCreated
    | ModelCalled
    | ToolCalled
    | TaskStateChanged
    | ArtifactReleased
    | CancelHeard
)


async def announce(fact: Fact, source: Origin | None = None) -> None:
    """Send a fact to every receiver and wait for them.

    Args:
        fact: what happened.
        source: its origin; the running turn's own (``origin``) when left out.

    A receiver that raises stops the work that announced the fact: a recorded run
    never shows less than what happened.
    """
    if not announced.receivers:
        return
    source = source or origin.get()
    if source is not None:
        await announced.asend(type(fact), fact=fact, source=source)
