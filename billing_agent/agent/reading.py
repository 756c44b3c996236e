"""What a person's words ask of a billing agent; pure text in, plain values out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from billing_agent.agent import _grammar as grammar

READ_LIMIT = 2_000
"""Characters of a message that are read: a longer one must not hold up the loop."""


class Intent(StrEnum):
    """What is wanted. ``UNCLEAR`` words may still name an invoice or a line."""

    EXPLAIN = "explain"
    SHOW = "show"
    LIST = "list"
    AUDIT = "audit"
    REMEMBER = "remember"
    PREFERENCES = "preferences"
    RECALL = "recall"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Reading:
    """One request as understood.

    Args:
        intent: what is wanted.
        text: the words themselves.
        invoices: invoice numbers named, in order.
        lines: lines named: known ones, or else a name that stands like one.
        direction: 1 when it is about a rise, -1 about a fall, 0 about neither.
        count: how many invoices are meant; None when no number says it.
        newest: whether the newest invoice is meant.
        largest: whether the line that moved most is meant.
        every_line: whether all lines are meant.
        preference: what is to be remembered, word for word.
    """

    intent: Intent
    text: str
    invoices: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    direction: int = 0
    count: int | None = None
    newest: bool = False
    largest: bool = False
    every_line: bool = False
    preference: str = ""

    @property
    def wanted(self) -> Intent:
        """The intent, or what naming a line or an invoice alone amounts to."""
        if self.intent in {Intent.UNCLEAR, Intent.SHOW} and self.names_lines:
            return Intent.EXPLAIN
        if self.intent is Intent.UNCLEAR and (self.invoices or self.newest):
            return Intent.SHOW
        return self.intent

    @property
    def names_lines(self) -> bool:
        """Whether it says which lines are meant."""
        return bool(self.lines) or self.largest or self.every_line

    def answered_by(self, answer: Reading) -> Reading:
        """Return this request completed by the answer to a question about it.

        An answer that asks for something of its own replaces the request.
        """
        if answer.intent not in {Intent.UNCLEAR, Intent.EXPLAIN, Intent.SHOW}:
            return answer
        if answer.intent is not Intent.UNCLEAR and answer.invoices and self.invoices:
            return answer
        earlier = (
            self
            if not answer.names_lines
            else replace(self, lines=(), largest=False, every_line=False)
        )
        return replace(
            earlier,
            intent=answer.intent
            if earlier.intent is Intent.UNCLEAR
            else earlier.intent,
            text=answer.text,
            invoices=answer.invoices or earlier.invoices,
            lines=answer.lines or earlier.lines,
            direction=answer.direction or earlier.direction,
            newest=answer.newest or (earlier.newest and not answer.invoices),
            largest=answer.largest or earlier.largest,
            every_line=answer.every_line or earlier.every_line,
        )


def read(text: str, known_lines: Iterable[str] = ()) -> Reading:
    """Read one message.

    Args:
        text: the message; what lies beyond ``READ_LIMIT`` is not read.
        known_lines: line names of the invoice in view, if one is.
    """
    text = text[:READ_LIMIT]
    folded = text.casefold()
    if wish := grammar.wish(text):
        return Reading(Intent.REMEMBER, text, preference=wish)
    return Reading(
        Intent(grammar.intent(folded) or Intent.UNCLEAR),
        text,
        invoices=grammar.invoices(folded),
        lines=grammar.lines(folded, tuple(known_lines)),
        direction=bool(grammar.RISE.search(folded)) - bool(grammar.FALL.search(folded)),
        count=grammar.count(folded),
        newest=bool(grammar.NEWEST.search(folded)),
        largest=bool(grammar.LARGEST.search(folded)),
        every_line=bool(grammar.EVERY_LINE.search(folded)),
    )
