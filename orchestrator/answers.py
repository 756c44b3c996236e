"""The five answers after turn 2, for people to read and for tests to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.scene import Part, part

if TYPE_CHECKING:
    from orchestrator.scene import Lookup, Scene
    from orchestrator.verdict import Verdict

DECIDING_TURN = 2


@dataclass(frozen=True, slots=True)
class Answers:
    """What turn 2 did, from measured events only.

    Args:
        replica: the one that served it.
        path: the letters of both turns.
        lookup: what it asked its store for; None when it never looked.
        seen: events in view at its first model call.
        verdict: what it released, and which switches alone would change its outcome.
    """

    replica: Part
    path: tuple[str, ...]
    lookup: Lookup | None
    seen: int
    verdict: Verdict


def answers(scene: Scene, decided: Verdict) -> Answers | None:
    """Return the answers, None before turn 2 has ended."""
    if decided.as_predicted is None:
        return None
    lookup = next((one for one in scene.lookups if one.turn == DECIDING_TURN), None)
    return Answers(
        replica=part(f"replica-{decided.path[-1].lower()}"),
        path=decided.path,
        lookup=lookup,
        seen=decided.events_seen[-1],
        verdict=decided,
    )
