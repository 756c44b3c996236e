"""Runs and the matrix printed for people, with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from orchestrator.config import Output, Sessions, Toggle
from orchestrator.fold import fold
from orchestrator.predict import Outcome
from orchestrator.scene import Shape
from orchestrator.sentences import sentence
from orchestrator.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from orchestrator.config import Configuration
    from orchestrator.events import Event
    from orchestrator.matrix import Cell
    from orchestrator.scene import Bubble, HeldStore, Part, Scene
    from orchestrator.verdict import Verdict

_SHAPES = {
    Shape.CIRCLE: "○",
    Shape.SQUARE: "■",
    Shape.TRIANGLE: "▲",
    Shape.DIAMOND: "◆",
    Shape.HEXAGON: "⬡",
}
_TIMES = "\N{MULTIPLICATION SIGN}"
_TITLE = f"Continuity {_TIMES} affinity, by store and output"
_STYLES = {"A": "yellow", "B": "cyan"}
_MARKS = {Outcome.ANSWERS: ("✔", "green"), Outcome.ASKS: ("✖", "red")}


def rendered(what: RenderableType) -> str:
    """Return what this terminal would print; plain text where there is none."""
    console = Console()
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def walkthrough(
    run_id: str, configuration: Configuration, events: Sequence[Event]
) -> RenderableType:
    """Show a run: conversation, events, what the stores hold, verdict."""
    scene = fold(events, configuration)
    chosen = "  ".join(f"{name} {value}" for name, value in _words(configuration))
    return Group(
        Text.assemble((run_id, "bold"), "  ", (chosen, "dim")),
        "",
        *(_bubble(bubble) for bubble in scene.bubbles),
        "",
        _events(scene),
        _ledger(scene.ledger or ()),
        _verdict(verdict(events, configuration)),
    )


def matrix(cells: Sequence[Cell]) -> RenderableType:
    """Show the sixteen cells: continuity and affinity by store and output."""
    columns = [(store, output) for store in Sessions for output in Output]
    table = Table(title=_TITLE, show_lines=True)
    table.add_column("")
    for store, output in columns:
        table.add_column(f"{store}\n{output}")
    places = {cell.configuration: cell for cell in cells}
    for continuity in reversed(Toggle):
        for affinity in reversed(Toggle):
            own = [
                cell
                for store, output in columns
                for place, cell in places.items()
                if (place.continuity, place.affinity) == (continuity, affinity)
                and (place.sessions, place.output) == (store, output)
            ]
            table.add_row(f"fix {continuity}\naffinity {affinity}", *map(_cell, own))
    count = sum(cell.as_predicted for cell in cells)
    return Group(table, Text(f"{count} / {len(cells)} as predicted", "bold"))


def _words(configuration: Configuration) -> list[tuple[str, str]]:
    return list(configuration.as_dict().items())


def _name(part: Part | None) -> tuple[str, str]:
    """Return a part as shape and letter, with its colour."""
    if part is None:
        return "▤ shared", "magenta"
    shown = f"{_SHAPES[part.shape]} {part.letter or part.name}"
    return shown, _STYLES.get(part.letter, "blue")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _bubble(bubble: Bubble) -> Text:
    speaker = ("◆ you", "blue") if bubble.who == "orchestrator" else None
    text = bubble.text or _count(len(bubble.data), "data part")
    note = "" if bubble.state in {"delivered", "answer"} else f"  ({bubble.state})"
    name, style = speaker or _name(bubble.replica)
    return Text.assemble((f"{name:<12}", style), text, (note, "dim"))


def _events(scene: Scene) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in scene.rows:
        name, style = _name(row.part)
        table.add_row(
            str(row.seq),
            f"[{style}]{name}[/]",
            escape(sentence(row.phrase)),
            f"[dim]{escape(row.wire)}[/]",
        )
    return table


def _ledger(stores: Sequence[HeldStore]) -> Table:
    table = Table(title="What the stores hold", title_justify="left")
    for heading in ("store", "user", "session", "events"):
        table.add_column(heading)
    for store in stores:
        name, style = _name(store.replica)
        shown = f"[{style}]{name}[/]"
        if not store.read:
            table.add_row(shown, "not read", "", "")
        elif not store.sessions:
            table.add_row(shown, "nothing stored", "", "")
        for held in store.sessions:
            session = escape(held.session_id)
            table.add_row(shown, escape(held.user), session, str(held.events))
    return table


def _verdict(found: Verdict) -> Panel:
    surprise = found.as_predicted is False
    undecided = ("⚠", "yellow") if surprise else ("·", "dim")
    mark, style = undecided if surprise or not found.outcome else _MARKS[found.outcome]
    released = found.released
    chips = (
        f"asked back {found.asked_back}{_TIMES}   path {'→'.join(found.path)}"
        f"   sessions {found.sessions}"
        f"   saw {', '.join(map(str, found.events_seen))}"
        f"   released {_count(released.artifacts, 'artifact')}"
        f" · {released.intermediate} intermediate · {released.bytes} bytes"
        f"   tenant {found.tenant}"
    )
    words = f"{mark} {found.sentence}"
    flip = f"What would change the outcome? {sentence(found.switch_phrase)}"
    return Panel(
        Group(Text(words, f"bold {style}"), Text(chips), Text(flip, "dim")),
        border_style=style,
    )


def _cell(cell: Cell) -> Text:
    found = cell.found
    if found is None:
        failure = cell.failure
        return Text(f"could not run\n{failure.error_id if failure else ''}", "yellow")
    outcome = found["outcome"]
    mark, style = _MARKS[outcome] if outcome else ("⚠", "yellow")
    text = Text.assemble(
        (f"{mark} {outcome or 'neither'}", style), f" {'→'.join(found['path'])}\n"
    )
    seen = found["events_seen"][-1] if found["events_seen"] else "?"
    released = found["released"]
    text.append(f"saw {seen}, {found['sessions']} sess\n")
    text.append(f"{released['artifacts']} art, {released['intermediate']} text")
    if not cell.as_predicted:
        text.append("\n⚠ surprise", "bold yellow")
    return text
