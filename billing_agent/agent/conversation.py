"""What a model can see of a conversation: the contents it was sent, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from google.genai import types

from billing_agent.agent.reading import Reading, read

ASK = "ask_user"


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

    def said(self, words: str) -> View:
        """Return the view after one more message."""
        words_now = (*self.words, words) if self.asked else (words,)
        return replace(self, words=words_now, asked=False, results=())

    def shown(self, result: Result) -> View:
        """Return the view after a tool answered."""
        invoice = self.invoice
        if result.tool == "get_invoice" and result.answer.get("number"):
            invoice = result.answer
        return replace(self, invoice=invoice, results=(*self.results, result))


def view(contents: Iterable[types.Content]) -> View:
    """Read the contents of a model request from the oldest to the newest."""
    seen = View()
    for content in contents:
        spoken: list[str] = []
        for part in content.parts or []:
            seen = _after(seen, part)
            spoken += _spoken(part)
        if content.role == "user" and spoken:
            seen = seen.said("\n".join(spoken))
    return seen


def _after(seen: View, part: types.Part) -> View:
    if part.function_call and part.function_call.name == ASK:
        return replace(seen, asked=True)
    response = part.function_response
    if response is None or response.name is None:
        return seen
    if response.name != ASK:
        return seen.shown(Result(response.name, response.response or {}))
    # A question that was closed without an answer no longer waits for one.
    return seen if _spoken(part) else replace(seen, asked=False)


def _spoken(part: types.Part) -> list[str]:
    """Return what a part says: its text, or the answer to a question."""
    response = part.function_response
    said = part.text
    if response and response.name == ASK:
        said = (response.response or {}).get("answer")
    return [said] if isinstance(said, str) and said and not part.thought else []
