"""The parts and lines of the drawing, lit for the current event: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.scene import Edge, Node, Topology, part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.scene import HeldStore, Row

_COLUMNS = {"orchestrator": 0, "filter": 1, "router": 2, "store": 4}
_REPLICAS_COLUMN = 3


def topology(
    rows: Sequence[Row], ledger: Sequence[HeldStore] | None, replicas: Iterable[str]
) -> Topology:
    """Draw the parts, and light those the last row's event touches or passes.

    Args:
        rows: the event list up to the cursor.
        ledger: what the stores hold, shown at their parts.
        replicas: names of the replicas known so far.
    """
    ends = (rows[-1].source, rows[-1].target) if rows else ()
    held = {
        store.replica.name if store.replica else "store": tuple(
            session.session_id for session in store.sessions
        )
        for store in ledger or ()
    }
    replicas = sorted(replicas)
    names = ["orchestrator", "filter", "router", *replicas, "store"]
    pairs = [("orchestrator", "filter"), ("filter", "router")]
    pairs += [("router", name) for name in replicas]
    pairs += [(name, "store") for name in replicas]
    return Topology(
        tuple(_node(name, name in ends, held.get(name, ())) for name in names),
        tuple(Edge(*pair, _passes(pair, ends)) for pair in pairs),
    )


def _node(name: str, lit: bool, sessions: tuple[str, ...]) -> Node:
    drawn = part(name)
    return Node(name, drawn.letter, drawn.shape, lit, sessions)


def _column(name: str) -> int:
    return _COLUMNS.get(name, _REPLICAS_COLUMN)


def _passes(pair: tuple[str, str], ends: Sequence[str]) -> bool:
    """Tell whether an event between ``ends`` travels on this line."""
    if not ends:
        return False
    first, last = sorted(map(_column, ends))
    return all(
        first <= _column(name) <= last
        and (name in ends or _column(name) != _REPLICAS_COLUMN)
        for name in pair
    )
