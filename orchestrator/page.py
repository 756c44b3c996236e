"""Where a reader stands in a run, and where the controls lead from there: pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.fold import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration
    from orchestrator.events import Event
    from orchestrator.scene import Row, Scene

LAST_STEP = 5
STORY_TURNS = 2
STEP_OF_TURN = {1: 1, 2: 4, 3: 5}


class Status(StrEnum):
    """Where the run stands, whatever the cursor."""

    FRESH = "fresh"
    RUNNING = "running"
    ASKED = "asked"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Place:
    """A step (0-5), and an event of it; None: the newest it has."""

    step: int
    event: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """What a control does: go to a place, or send a turn; neither: it rests."""

    place: Place | None = None
    turn: int | None = None

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do."""
        return self.place is None and self.turn is None

    def after_sending(self) -> Move:
        """Return the move to where the sent turn begins to show."""
        return Move(Place(STEP_OF_TURN[self.turn])) if self.turn else self


@dataclass(frozen=True, slots=True)
class Page:
    """One view of a run.

    Args:
        place: where the reader stands, as its address says.
        scene: the run folded up to the cursor.
        recorded: the run folded up to its newest event.
        rows: the events of the step, those after the cursor too.
        claimed: the turn on its way; None when none is.
    """

    place: Place
    scene: Scene
    recorded: Scene
    rows: tuple[Row, ...]
    event: Event | None
    status: Status
    claimed: int | None

    @property
    def live(self) -> bool:
        """Whether the newest event is on screen."""
        return self.scene.cursor == self.recorded.cursor

    @property
    def newest(self) -> Place:
        """Where the newest event is on screen."""
        return Place(self.recorded.step)


def step_of(recorded: Scene, seq: int) -> int:
    """Return the step event ``seq`` belongs to, 0 for none."""
    return recorded.rows[seq - 1].step if seq else 0


def canonical(place: Place, recorded: Scene) -> Place:
    """Return the one address of a place: a known event decides its step."""
    if place.event is None:
        return place
    seq = min(place.event, recorded.cursor)
    if seq < 1:
        return Place(0)
    return Place(step_of(recorded, seq), seq)


def view(
    events: Sequence[Event],
    configuration: Configuration,
    place: Place,
    claimed: int | None = None,
) -> Page:
    """Show a run from a place.

    Args:
        events: all that is recorded.
        configuration: the run's switches.
        place: as ``canonical`` returns it.
        claimed: the turn on its way, also before its first event is recorded.
    """
    recorded = fold(events, configuration)
    newest = recorded.steps[place.step].last_seq
    cursor = newest if place.event is None else place.event
    return Page(
        place=place,
        scene=fold(events[:cursor], configuration),
        recorded=recorded,
        rows=tuple(row for row in recorded.rows if row.step == place.step),
        event=events[cursor - 1] if cursor else None,
        status=_status(recorded, claimed),
        claimed=claimed,
    )


def _status(recorded: Scene, claimed: int | None) -> Status:
    if claimed:
        return Status.RUNNING
    if recorded.failure:
        return Status.FAILED
    if recorded.pending:
        return Status.ASKED
    return Status.ENDED if recorded.cursor else Status.FRESH


def next_event(page: Page) -> Move:
    """Return what the next control does: one event on, or the story's next turn."""
    seq = page.scene.cursor + 1
    if seq <= page.recorded.cursor:
        return Move(Place(step_of(page.recorded, seq), seq))
    return _beyond(page)


def next_step(page: Page) -> Move:
    """Return what the step control does: a step on, or the story's next turn."""
    target = page.place.step + 1
    if target > LAST_STEP:
        return _third_turn(page)
    if page.recorded.steps[target].events:
        return Move(Place(target))
    if page.claimed and target <= _reach(page.claimed):
        return Move(Place(target))
    return _beyond(page)


def _third_turn(page: Page) -> Move:
    """Return the move after the story's end: one more message, for the curious."""
    free = not page.claimed and not page.recorded.failure
    third = STORY_TURNS + 1
    return Move(turn=third) if free and page.recorded.next_turn == third else Move()


def _reach(turn: int) -> int:
    """Return the last step a turn's events belong to."""
    return STEP_OF_TURN.get(turn + 1, LAST_STEP + 1) - 1


def _beyond(page: Page) -> Move:
    """Return the move past everything recorded."""
    due = page.recorded.next_turn
    if page.claimed or page.recorded.failure:
        return Move()
    if due is not None and due <= STORY_TURNS:
        return Move(turn=due)
    return Move(Place(LAST_STEP)) if page.place.step < LAST_STEP else Move()


def previous_event(page: Page) -> Move:
    """Return what the back control does: one event back."""
    if page.place.step == LAST_STEP and not page.rows:
        return Move(_at(page.recorded, page.recorded.cursor))
    if page.scene.cursor < 1:
        return Move()
    return Move(_at(page.recorded, page.scene.cursor - 1))


def _at(recorded: Scene, seq: int) -> Place:
    return Place(step_of(recorded, seq), seq) if seq else Place(0)


def first_event(page: Page) -> Move:
    """Return the move to the first recorded event."""
    return Move(_at(page.recorded, 1)) if page.recorded.cursor else Move()


def last_event(page: Page) -> Move:
    """Return the move to the newest event, staying there as more arrive."""
    return Move(page.newest) if page.recorded.cursor else Move()
