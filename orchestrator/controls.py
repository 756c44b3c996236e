"""The controls of the walkthrough: steps, switches, back and next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from orchestrator.config import Output, Sessions, Toggle
from orchestrator.page import (
    LAST_STEP,
    Move,
    Place,
    first_event,
    last_event,
    next_event,
    next_step,
    previous_event,
)
from orchestrator.texts import STEPS, TEXTS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    from orchestrator.config import Configuration
    from orchestrator.page import Page

    Text = str | _StrPromise


@dataclass(frozen=True, slots=True)
class StepLink:
    """One of the six numbered buttons; ``events`` counts all it has recorded."""

    number: int
    title: str
    events: int
    current: bool
    reachable: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Choice:
    """One position of a switch."""

    value: str
    word: Text
    chosen: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch as it stands; ``toggle`` when its positions are on and off."""

    name: str
    label: Text
    key: str
    choices: tuple[Choice, ...]
    toggle: bool

    @property
    def value(self) -> str:
        """Its position."""
        return next(choice.value for choice in self.choices if choice.chosen)

    @property
    def word(self) -> Text:
        """The word for its position."""
        return next(choice.word for choice in self.choices if choice.chosen)

    @property
    def other(self) -> str:
        """Its other position."""
        return next(choice.value for choice in self.choices if not choice.chosen)


@dataclass(frozen=True, slots=True)
class Button:
    """A move with its looks; ``keys`` press it, ``name`` says what a glyph means."""

    id: str
    label: Text
    name: Text
    keys: str
    look: str
    move: Move

    @property
    def place(self) -> Place | None:
        """Where it leads."""
        return self.move.place

    @property
    def turn(self) -> int | None:
        """The turn it sends."""
        return self.move.turn


LABELS: dict[str, Text] = {
    "continuity": _("continuity fix"),
    "affinity": _("affinity"),
    "output": _("output"),
    "sessions": _("session store"),
}
KEYS = {"continuity": "f", "affinity": "a", "output": "o", "sessions": "h"}
KINDS = {
    "continuity": Toggle,
    "affinity": Toggle,
    "output": Output,
    "sessions": Sessions,
}
WORDS: dict[str, Text] = {
    Toggle.ON: _("on"),
    Toggle.OFF: _("off"),
    Output.PER_RUN: _("per run"),
    Output.PER_EVENT: _("per event"),
    Sessions.MEMORY: _("memory"),
    Sessions.SHARED: _("shared"),
}
_SENDS: dict[int, Text] = {
    1: _("Send the question"),
    2: _("Send the reply"),
    3: _("Send a third message"),
}


def step_links(page: Page) -> list[StepLink]:
    """Return the six steps; those ahead of the record cannot be reached yet."""
    ended = page.recorded.next_turn == 3
    return [
        StepLink(
            number,
            gettext(TEXTS[f"walk.{number}.title"]),
            page.recorded.steps[number].events,
            number == page.place.step,
            number == 0
            or page.recorded.steps[number].events > 0
            or (number == LAST_STEP and ended)
            or number == page.place.step,
            Place(number),
        )
        for number in STEPS
    ]


def switches(configuration: Configuration) -> list[Switch]:
    """Return the four switches as the run has them."""
    chosen = configuration.as_dict()
    return [
        Switch(
            name,
            LABELS[name],
            KEYS[name],
            tuple(
                Choice(str(value), WORDS[value], value == chosen[name])
                for value in kind
            ),
            kind is Toggle,
        )
        for name, kind in KINDS.items()
    ]


def _allowed(move: Move, owner: bool) -> Move:
    """Only the run's owner may send."""
    return Move() if move.turn and not owner else move


def buttons(page: Page, owner: bool) -> list[Button]:
    """Return back, next and the others, in the order they stand."""
    onward = _allowed(next_step(page), owner)
    back, on = previous_event(page), _allowed(next_event(page), owner)
    moves: list[tuple[str, Text, Text, str, str, Move]] = [
        ("first", "|◀", _("first event"), "Home", "edge", first_event(page)),
        ("back", _("◀ back"), "", "ArrowLeft PageUp", "grow", back),
        ("next", _("next ▶"), "", "ArrowRight Space PageDown", "grow", on),
        ("last", "▶|", _("last event"), "End", "edge", last_event(page)),
        ("onward", _onward(onward), "", "Shift+ArrowRight", "grow primary", onward),
    ]
    return [Button(*move) for move in moves]


def _onward(move: Move) -> Text:
    if move.turn:
        return _SENDS[move.turn]
    return _("next step")
