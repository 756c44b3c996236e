"""The verdict on a run: what turn 2 did, measured, and held against the rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.config import Toggle
from orchestrator.fold import tenant
from orchestrator.measure import DECIDING_TURN, Measured, measure, story_of
from orchestrator.predict import Outcome, Prediction, deciding_switches, predict
from orchestrator.release import released
from orchestrator.sentences import Phrase, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config import Configuration
    from orchestrator.events import Event

# The replicas' letters are foretold for this context alone.
FORETOLD_CONTEXT = "ctx-41"
# What the rule says and what was measured, where the two part first.
Gap = tuple[Phrase, Phrase]


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What turn 2 released: artifacts, texts outside the final one, bytes of both."""

    artifacts: int
    intermediate: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run's events say, none of it taken from its configuration's promise.

    Args:
        outcome: of turn 2; None before it has ended, or when it did neither.
        predicted: the outcome the rule gives.
        as_predicted: whether outcome, path, events seen and sessions are those of
            the rule; None before turn 2 has ended.
        path: the letter of the replica that answered each turn.
        events_seen: events in view at each turn's first model call.
        sessions: held for the context over all stores; None before the first ledger.
        released: by turn 2.
        task_states: in which each turn left its task.
        tenant: stamped by the filter; empty before.
        asked_back: how often the agent asked.
        gap: what the rule says and what was measured, at the first point where they
            differ; None when they do not, and before turn 2 has ended.
        phrase: the sentence of the verdict strip.
        switches: those whose flip alone would change the outcome; empty while that
            is open, when none does, and when the run disagrees with the rule.
        switch_phrase: the same in words.
    """

    outcome: Outcome | None
    predicted: Outcome
    as_predicted: bool | None
    path: tuple[str, ...]
    events_seen: tuple[int, ...]
    sessions: int | None
    released: Disclosure
    task_states: tuple[str, ...]
    tenant: str
    asked_back: int
    gap: Gap | None
    phrase: Phrase
    switches: tuple[str, ...]
    switch_phrase: Phrase

    @property
    def sentence(self) -> str:
        """The verdict in English."""
        return sentence(self.phrase)

    def as_dict(self) -> dict[str, Any]:
        """Return the keys that ``walkthrough --json`` prints of a verdict."""
        return {
            "outcome": self.outcome,
            "predicted": self.predicted,
            "as_predicted": self.as_predicted,
            "path": [*self.path],
            "events_seen": [*self.events_seen],
            "sessions": self.sessions,
            "released": asdict(self.released),
            "task_states": [*self.task_states],
            "tenant": self.tenant,
            "asked_back": self.asked_back,
            "sentence": self.sentence,
            "switches": [*self.switches],
        }


def verdict(events: Sequence[Event], configuration: Configuration) -> Verdict:
    """Judge a run by its events; a third turn changes nothing any more.

    Args:
        events: any prefix of a run's events, in order.
        configuration: the switches, which choose the rule to hold the run against.
    """
    story = story_of(events)
    found = measure(story)
    rule = predict(configuration, found.replicas)
    gap = _first_gap(found, rule) if found.ended else None
    settled = found.ended and gap is None
    switches = deciding_switches(configuration, found.replicas) if settled else ()
    return Verdict(
        outcome=found.outcome,
        predicted=rule.outcome,
        as_predicted=gap is None if found.ended else None,
        path=found.path,
        events_seen=found.events_seen,
        sessions=found.sessions,
        released=_disclosure(story),
        task_states=found.task_states,
        tenant=tenant(story),
        asked_back=found.asked_back,
        gap=gap,
        phrase=_phrase(found, configuration, gap),
        switches=switches,
        switch_phrase=_switch_phrase(found.ended, gap, switches, configuration),
    )


def _disclosure(story: Sequence[Event]) -> Disclosure:
    turn = released(story, DECIDING_TURN)
    return Disclosure(len(turn.artifacts), len(turn.intermediate), turn.size)


def _first_gap(found: Measured, rule: Prediction) -> Gap | None:
    """Return the first point where rule and run disagree, in words of both."""
    measured = f"outcome.{found.outcome or 'neither'}"
    if found.outcome != rule.outcome:
        return Phrase(f"outcome.{rule.outcome}"), Phrase(measured)
    if found.moved not in {None, rule.moves}:
        words = Phrase("aspect.stayed"), Phrase("aspect.moved")
        return words if found.moved else words[::-1]
    if _is_foretold(found) and found.path != rule.path:
        return _paths(rule.path), _paths(found.path)
    if found.events_seen != rule.events_seen:
        return _listed(rule.events_seen), _listed(found.events_seen)
    if found.sessions != rule.sessions:
        counts = rule.sessions, found.sessions or 0
        return (
            Phrase("aspect.sessions", {"value": counts[0]}),
            Phrase("aspect.sessions", {"value": counts[1]}),
        )
    return None


def _is_foretold(found: Measured) -> bool:
    """Tell whether the rule knows the replicas' letters, not only same or other."""
    return (
        found.embedded_router
        and found.context == FORETOLD_CONTEXT
        and found.replicas > 1
    )


def _paths(path: Sequence[str]) -> Phrase:
    return Phrase("aspect.path", {"value": "→".join(path)})


def _listed(counts: Sequence[int]) -> Phrase:
    return Phrase("aspect.seen", {"value": ", ".join(map(str, counts))})


def _phrase(
    found: Measured,
    configuration: Configuration,
    gap: Gap | None,
) -> Phrase:
    if not found.ended:
        return Phrase("verdict.open")
    if gap is not None:
        return Phrase("verdict.surprise", {"predicted": gap[0], "measured": gap[1]})
    # By what was measured: one replica alone stays itself without affinity, too.
    moved = "off" if found.moved else "on"
    key = f"verdict.{configuration.continuity}.{moved}"
    if (configuration.continuity, moved) != (Toggle.OFF, "on"):
        key += f".{configuration.sessions}"
    values: dict[str, str | int | Phrase] = {
        "context": found.context,
        "first": found.path[0] if found.path else "?",
        "second": found.path[-1] if found.path else "?",
        "seen": found.events_seen[-1],
    }
    return Phrase(key, values)


def _switch_phrase(
    ended: bool,
    gap: Gap | None,
    switches: Sequence[str],
    configuration: Configuration,
) -> Phrase:
    if not ended:
        return Phrase("switch.open")
    if gap is not None:
        return Phrase("switch.unknown")
    flips = [
        Phrase(f"flip.{name}.{configuration.flipped(name).as_dict()[name]}")
        for name in switches
    ]
    key = ("switch.none", "switch.one", "switch.two")[len(flips)]
    return Phrase(key, dict(zip(("first", "second"), flips, strict=False)))
