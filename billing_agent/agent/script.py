"""The scripted model's decisions: what to say or call next, given a view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from billing_agent.agent import sentences
from billing_agent.agent.conversation import ASK, View
from billing_agent.agent.reading import Intent, Reading

WHICH_LINE = "Which line item do you mean?"
WHICH_INVOICE = "Which invoice do you mean?"
REMARK = "Internal: renewal at risk, do not volunteer a discount."
"""What the model thinks aloud when a bill is questioned; not for the caller."""

HELP = (
    "I can explain, show, list, compare and audit your invoices, and remember how you"
    " like your answers. Name an invoice to begin."
)


@dataclass(frozen=True, slots=True)
class Move:
    """One reply of the model: words, a tool call, or words with a call."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def decide(view: View) -> Move:
    """Return the next move; the view is all it depends on.

    Nothing in view that names an invoice makes it ask, whatever was said before
    elsewhere: a history that was lost causes the question again.
    """
    for result in view.results:
        if result.error:
            return Move(f"I cannot answer that: {result.error}.")
    request = view.request
    return _ANSWERS[request.wanted](request, view)


def _ask(question: str) -> Move:
    return Move(tool=ASK, arguments={"question": question})


def _explain(request: Reading, view: View) -> Move:
    number = _number(request, view)
    if number is None:
        return _which_invoice(request, view)
    if view.invoice is None or view.invoice["number"] != number:
        text = f"Looking up invoice {number}. {REMARK}"
        return Move(text, "get_invoice", {"number": number})
    if request.lines and not set(request.lines) <= set(view.lines):
        known = sentences.either(view.lines, "and")
        return _ask(f"{WHICH_LINE} Invoice {number} has {known}.")
    if "previous" not in view.invoice and not request.lines:
        return Move(f"Invoice {number} is the first; there is nothing to compare with.")
    lines = request.lines or _movers(request, view.invoice)
    if request.every_line or not lines:
        return Move(sentences.changes(view.invoice))
    if len(lines) > 1 and not request.lines:
        return _ask(WHICH_LINE)
    return _compare(request, view, lines)


def _compare(request: Reading, view: View, lines: tuple[str, ...]) -> Move:
    """Compare the next line that was not compared yet, or say what came out."""
    compared = {row["line"]: row for row in view.answers("compare_line_item")}
    arguments: dict[str, Any] = {"number": _number(request, view)}
    if len(request.invoices) > 1:
        arguments["against"] = request.invoices[1]
    for line in lines:
        if line not in compared:
            text = f"Comparing the {line} line of invoice {arguments['number']}."
            return Move(text, "compare_line_item", arguments | {"line": line})
    return Move(" ".join(sentences.comparison(compared[line]) for line in lines))


def _movers(request: Reading, invoice: dict[str, Any]) -> tuple[str, ...]:
    """Return the lines that moved the way the question says, the largest first."""
    direction = request.direction or _sign(invoice.get("change", "0"))
    moved = [
        row
        for row in invoice["lines"]
        if "change" in row and _sign(row["change"]) == direction
    ]
    moved.sort(key=lambda row: abs(Decimal(row["change"])), reverse=True)
    names = tuple(row["line"] for row in moved if _sign(row["change"]))
    return names[:1] if request.largest else names


def _sign(change: str) -> int:
    amount = Decimal(change)
    return (amount > 0) - (amount < 0)


def _number(request: Reading, view: View) -> int | None:
    """Return the invoice that is meant: one named, the newest, or the one in view."""
    if request.invoices:
        return request.invoices[0]
    if request.newest:
        listed = [
            row
            for answer in view.answers("list_invoices")
            for row in answer["invoices"]
        ]
        return listed[0]["number"] if listed else None
    return view.invoice["number"] if view.invoice else None


def _which_invoice(request: Reading, view: View) -> Move:
    if request.newest and not view.answers("list_invoices"):
        return Move(tool="list_invoices", arguments={"newest": 1})
    if request.names_lines:
        # "compute" alone is a line of every invoice: which line is still open.
        return _ask(f"{WHICH_LINE} I have no invoice in view.")
    return _ask(WHICH_INVOICE)


def _show(request: Reading, view: View) -> Move:
    number = _number(request, view)
    if number is None:
        return _which_invoice(request, view)
    if view.invoice is None or view.invoice["number"] != number:
        text = f"Looking up invoice {number}."
        return Move(text, "get_invoice", {"number": number})
    return Move(sentences.summary(view.invoice))


def _list(request: Reading, view: View) -> Move:
    for answer in view.answers("list_invoices"):
        return Move(sentences.listing(answer))
    arguments = {} if request.count is None else {"newest": request.count}
    return Move("Listing your invoices.", "list_invoices", arguments)


def _audit(request: Reading, view: View) -> Move:
    """Check one invoice a call, from the named or newest one backwards."""
    checked = view.answers("audit_invoice")
    single = 1 if request.invoices or request.newest else None
    wanted = request.count or single
    if checked:
        following = checked[-1].get("previous")
        if following is None or len(checked) == wanted:
            return Move(sentences.audit(checked))
    else:
        following = request.invoices[0] if request.invoices else None
    if following is None:
        return Move("Checking the newest invoice.", "audit_invoice")
    return Move(
        f"Checking invoice {following}.", "audit_invoice", {"number": following}
    )


def _remember(request: Reading, view: View) -> Move:
    if view.answers("remember_preference"):
        return Move(f"I will remember: {request.preference}")
    wish = {"preference": request.preference}
    return Move("Noting that down.", "remember_preference", wish)


def _preferences(request: Reading, view: View) -> Move:
    for answer in view.answers("recall_preferences"):
        kept = "; ".join(answer["preferences"])
        known = f"You asked me to remember: {kept}" if kept else ""
        return Move(known or "I know of no preference of yours.")
    return Move(tool="recall_preferences")


def _recall(request: Reading, view: View) -> Move:
    for answer in view.answers("recall"):
        found = "\n".join(answer["memories"])
        return Move(f"I recall:\n{found}" if found else "I recall nothing about that.")
    return Move(tool="recall", arguments={"topic": request.text})


def _help(request: Reading, view: View) -> Move:
    return Move(HELP)


_ANSWERS: dict[Intent, Callable[[Reading, View], Move]] = {
    Intent.EXPLAIN: _explain,
    Intent.SHOW: _show,
    Intent.LIST: _list,
    Intent.AUDIT: _audit,
    Intent.REMEMBER: _remember,
    Intent.PREFERENCES: _preferences,
    Intent.RECALL: _recall,
    Intent.UNCLEAR: _help,
}
