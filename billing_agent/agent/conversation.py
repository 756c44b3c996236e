"""What a model can see of a conversation: the contents it was sent, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from google.genai import types

from billing_agent.agent.reading import Reading, read

ASK = "ask_user"
LOOK_UP = "get_invoice"


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered."""

    tool: str
    answer: dict[str, Any]

    @property
    def error(self) -> str:
        """Why the tool could not answer; empty when it could."""
        return str(self.answer.get("error", ""))


@dataclass(frozen=True, slots=True)
class View:
    """The conversation as far as the model was shown it.

    Args:
        words: the latest message, after those it answers a question about.
        asked: whether the newest thing in view is a question of the agent.
        invoice: the invoice looked up last, as ``get_invoice`` answered it.
        results: what tools answered since the latest message, in order.
    """

    words: tuple[str, ...] = ()
    asked: bool = False
    invoice: dict[str, Any] | None = None
    results: tuple[Result, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Line names of the invoice in view."""
        return tuple(row["line"] for row in (self.invoice or {}).get("lines", ()))

    @property
    def request(self) -> Reading:
        """The latest message, read together with what it answers."""
        first, *rest = (read(words, self.lines) for words in self.words or ("",))
        for answer in rest:
            first = first.answered_by(answer)
        return first

    def answers(self, tool: str) -> list[dict[str, Any]]:
        """Return what one tool answered since the latest message, errors left out."""
        return [
            result.answer
            for result in self.results
            if result.tool == tool and not result.error
        ]


def view(contents: Iterable[types.Content]) -> View:
    """Read the contents of a model request from the oldest to the newest."""
    seen = _Reader()
    for content in contents:
        seen.read(content)
    return View(tuple(seen.words), seen.asked, seen.invoice, tuple(seen.results))


@dataclass(slots=True)
class _Reader:
    """What was seen up to a point; see ``View`` for the fields."""

    words: list[str] = field(default_factory=list)
    asked: bool = False
    invoice: dict[str, Any] | None = None
    results: list[Result] = field(default_factory=list)

    def read(self, content: types.Content) -> None:
        spoken: list[str] = []
        for part in content.parts or ():
            if part.function_call:
                self.asked |= part.function_call.name == ASK
            elif part.function_response:
                spoken += self._responded(part.function_response)
            elif part.text and not part.thought:
                spoken.append(part.text)
        if content.role == "user" and spoken:
            self._said("\n".join(spoken))

    def _responded(self, response: types.FunctionResponse) -> list[str]:
        """Take in a tool's result; return the words if it is a person's answer."""
        answer = response.response or {}
        if response.name == ASK:
            words = answer.get("answer")
            # A question that was closed without an answer no longer waits for one.
            self.asked = isinstance(words, str)
            return [words] if isinstance(words, str) else []
        self.results.append(Result(response.name or "", answer))
        if response.name == LOOK_UP and answer.get("number"):
            self.invoice = answer
        return []

    def _said(self, words: str) -> None:
        self.words = [*self.words, words] if self.asked else [words]
        self.asked = False
        self.results = []
