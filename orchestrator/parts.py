"""The parts of a walkthrough page, rendered once for all who see the same.

First page, htmx answer, socket push and polling take the same fragments from here,
so they cannot drift apart.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.template.loader import get_template
from django.utils.translation import get_language

from orchestrator.lease import is_abandoned
from orchestrator.sending import turn_on_its_way
from orchestrator.shown import context

if TYPE_CHECKING:
    from orchestrator.health import Health
    from orchestrator.page import Place
    from orchestrator.snapshots import Snapshot

# The cursor comes first: it says what the others show.
NAMES = (
    "cursor",
    "verdict",
    "steps",
    "story",
    "progress",
    "topology",
    "conversation",
    "events",
    "answers",
    "ledger",
    "sees",
    "wire",
    "switches",
    "moves",
    "health",
)
_TEMPLATES = {name: get_template(f"orchestrator/parts/{name}.html") for name in NAMES}
WAIT_NOTICE = timedelta(seconds=2)
MOST_KEPT = 128
_kept: OrderedDict[tuple[str, int, Sight], dict[str, str]] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Sight:
    """What a page depends on besides the recorded events.

    Args:
        place: where the reader stands.
        owner: whether the reader may send the run's next message.
        claimed: the turn on its way.
        waited: whether the last word of it is ``WAIT_NOTICE`` old.
        stalled: whether its sender has died, so that it may be sent again.
        health: which parts answer.
        language: the reader's.
    """

    place: Place
    owner: bool
    claimed: int | None
    waited: bool
    stalled: bool
    health: Health
    language: str


def sight(snapshot: Snapshot, place: Place, owner: bool, health: Health) -> Sight:
    """Return how a reader sees a run now."""
    claimed = turn_on_its_way(snapshot.run)
    silent = datetime.now(UTC) - snapshot.run.active_at
    return Sight(
        place=place,
        owner=owner,
        claimed=claimed,
        waited=claimed is not None and silent >= WAIT_NOTICE,
        stalled=is_abandoned(snapshot.run),
        health=health,
        language=get_language() or "",
    )


def mark(snapshot: Snapshot, seen: Sight) -> str:
    """Return a short name of what a place shows now: a page that has it is current."""
    state = seen.owner, seen.claimed, seen.waited, seen.stalled, seen.health
    return f"{snapshot.seq}-{zlib.crc32(repr(state).encode()):08x}"


def render(snapshot: Snapshot, seen: Sight) -> dict[str, str]:
    """Return every part as HTML, by name; the same sight is rendered once."""
    key = snapshot.run.id, snapshot.seq, seen
    if key not in _kept:
        shown = {**context(snapshot, seen), "mark": mark(snapshot, seen)}
        _kept[key] = {
            name: template.render(shown) for name, template in _TEMPLATES.items()
        }
    _kept.move_to_end(key)
    while len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
    return _kept[key]
