"""Where the parts of the topology are drawn: pure coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from orchestrator.scene import Node, Shape, Topology

HEIGHT = 128.0
_LINE = 14
_COLUMNS = {
    "orchestrator": (2, 118),
    "filter": (136, 66),
    "router": (218, 72),
    "store": (446, 72),
}
_REPLICA = (316, 106)
_SHORT, _TALL = 34.0, 58.0
_LINES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text at a height."""

    text: str
    y: float


@dataclass(frozen=True, slots=True)
class Plate:
    """A drawn part: its box, its mark, its label and the sessions it holds."""

    name: str
    label: str
    shape: Shape | str
    lit: bool
    down: bool
    x: float
    y: float
    width: float
    height: float
    held: tuple[Line, ...]

    @property
    def mark_x(self) -> float:
        """Left of the shape."""
        return self.x + 8

    @property
    def mark_y(self) -> float:
        """Top of the shape."""
        return self.y + 10

    @property
    def text_x(self) -> float:
        """Left of the label."""
        return self.x + 27

    @property
    def text_y(self) -> float:
        """Base line of the label."""
        return self.y + 21


@dataclass(frozen=True, slots=True)
class Wire:
    """A drawn line."""

    path: str
    lit: bool


def short_id(text: str) -> str:
    """Return an id that fits a narrow column: long ones by both ends."""
    return text if len(text) <= 18 else f"{text[:4]}…{text[-4:]}"


def plates(
    topology: Topology, labels: Mapping[str, str], down: Collection[str] = ()
) -> tuple[Plate, ...]:
    """Place the parts from left to right, replicas below each other.

    Args:
        topology: which parts there are, and which are lit.
        labels: what a part is called; replicas by their letter when missing.
        down: names of the parts that do not answer.
    """
    replicas = [n.name for n in topology.nodes if n.name.startswith("replica-")]
    return tuple(
        _plate(
            node, _box(node.name, replicas), labels.get(node.name, node.letter), down
        )
        for node in topology.nodes
    )


def _box(name: str, replicas: list[str]) -> tuple[float, float, float, float]:
    if name not in replicas:
        x, width = _COLUMNS[name]
        height = _TALL if name == "store" else _SHORT
        return x, (HEIGHT - height) / 2, width, height
    slot = HEIGHT / len(replicas)
    x, width = _REPLICA
    height = min(_TALL, slot - 4)
    y = slot * replicas.index(name) + (slot - height) / 2
    return x, y, width, height


def _plate(
    node: Node,
    box: tuple[float, float, float, float],
    label: str,
    down: Collection[str],
) -> Plate:
    y = box[1]
    shown = [short_id(session) for session in node.sessions]
    if len(shown) > _LINES_SHOWN:
        fitting = _LINES_SHOWN - 1
        shown[fitting:] = [f"+{len(shown) - fitting}"]
    held = tuple(
        Line(text, y + 38 + _LINE * number) for number, text in enumerate(shown)
    )
    shape = "store" if node.name == "store" else node.shape
    return Plate(
        node.name,
        label,
        shape,
        node.lit,
        node.name in down,
        *box,
        held,
    )


def wires(topology: Topology, drawn: tuple[Plate, ...]) -> tuple[Wire, ...]:
    """Draw the lines, lit ones last so that nothing covers them."""
    by_name = {plate.name: plate for plate in drawn}
    lines = [
        Wire(_path(by_name[edge.source], by_name[edge.target]), edge.lit)
        for edge in topology.edges
    ]
    return tuple(sorted(lines, key=lambda line: line.lit))


def _path(source: Plate, target: Plate) -> str:
    x1, y1 = source.x + source.width, source.y + source.height / 2
    x2, y2 = target.x, target.y + target.height / 2
    middle = (x1 + x2) / 2
    return f"M{x1:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
