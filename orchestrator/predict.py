"""The rule of the story: what turn 2 must do under a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.config import Configuration, Sessions, Toggle


class Outcome(StrEnum):
    """How turn 2 ends."""

    ANSWERS = "answers"
    ASKS = "asks"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the rule says.

    Args:
        outcome: of turn 2.
        events_seen: events in view at the first model call of turns 1 and 2.
        sessions: how many the context has over all stores after turn 2.
        moves: whether turn 2 reaches another replica than turn 1.
        path: the letters of both replicas; they hold for ctx-41, two replicas and
            the embedded router.
    """

    outcome: Outcome
    events_seen: tuple[int, int]
    sessions: int
    moves: bool
    path: tuple[str, str]


def predict(configuration: Configuration, replicas: int = 2) -> Prediction:
    """Apply the rule to a configuration.

    Args:
        configuration: the switches.
        replicas: how many there are; one alone never hands a conversation over.
    """
    moves = configuration.affinity is Toggle.OFF and replicas > 1
    within_reach = configuration.sessions is Sessions.SHARED or not moves
    remembers = configuration.continuity is Toggle.ON and within_reach
    return Prediction(
        outcome=Outcome.ANSWERS if remembers else Outcome.ASKS,
        events_seen=(1, 5 if remembers else 1),
        sessions=1 if remembers else 2,
        moves=moves,
        path=("B", "A" if moves else "B"),
    )


def deciding_switches(
    configuration: Configuration, replicas: int = 2
) -> tuple[str, ...]:
    """Return the switches each of which alone would change the outcome.

    There may be several, and none: where two things are wrong, mending one of them
    is not enough.
    """
    outcome = predict(configuration, replicas).outcome
    return tuple(
        name
        for name in configuration.as_dict()
        if predict(configuration.flipped(name), replicas).outcome is not outcome
    )
