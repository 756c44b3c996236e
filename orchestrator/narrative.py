"""What a step of the walkthrough says, in the variant of the run's switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.config import Output, Sessions, Toggle
from orchestrator.sentences import same, sentence
from orchestrator.texts import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.config import Configuration
    from orchestrator.verdict import Gap

# By the continuity fix, whether turn 2 reaches another replica, and the store.
_FOURTH: dict[tuple[Toggle, bool, Sessions], str] = {
    (Toggle.ON, False, Sessions.MEMORY): "walk.4.remembered",
    (Toggle.ON, False, Sessions.SHARED): "walk.4.remembered.shared",
    (Toggle.ON, True, Sessions.MEMORY): "walk.4.affinity_off.memory",
    (Toggle.ON, True, Sessions.SHARED): "walk.4.affinity_off.shared",
    (Toggle.OFF, False, Sessions.MEMORY): "walk.4.fix_off",
    (Toggle.OFF, False, Sessions.SHARED): "walk.4.fix_off",
    (Toggle.OFF, True, Sessions.MEMORY): "walk.4.both_off.memory",
    (Toggle.OFF, True, Sessions.SHARED): "walk.4.both_off.shared",
}
_SURPRISE = "walk.4.surprise"
_ALONE = "walk.4.remembered.alone"
_ANSWERS = {
    "walk.4.remembered",
    "walk.4.remembered.shared",
    _ALONE,
    _FOURTH[Toggle.ON, True, Sessions.SHARED],
}


@dataclass(frozen=True, slots=True)
class Narrative:
    """The words of one step; ``holds`` says where its claim is true."""

    step: int
    title: str
    paragraphs: tuple[str, ...]
    look: str
    ask: str
    holds: str


def _fourth(chosen: Configuration, moves: bool, surprise: bool) -> list[str]:
    """Name what turn 2 came to: as the rule says, unless the run was measured so."""
    if surprise:
        forgetful = chosen.sessions is Sessions.MEMORY
        return [_SURPRISE, *([f"{_SURPRISE}.memory"] if forgetful else [])]
    if chosen.affinity is Toggle.OFF and not moves and chosen.continuity is Toggle.ON:
        return [_ALONE]
    return [_FOURTH[chosen.continuity, moves, chosen.sessions]]


def _paragraph_keys(step: int, chosen: Configuration, fourth: list[str]) -> list[str]:
    fix = "fix_on" if chosen.continuity is Toggle.ON else "fix_off"
    shared = ["walk.0.shared"] if chosen.sessions is Sessions.SHARED else []
    told = ["per_event"] if chosen.output is Output.PER_EVENT else []
    return [
        ["walk.0.body", *shared, "walk.0.name"],
        ["walk.1.body", "walk.1.refused"],
        [f"walk.2.affinity_{chosen.affinity}", f"walk.2.{fix}"],
        ["walk.3.body", "walk.3.waits", *(f"walk.3.{key}" for key in told)],
        ["walk.4.body", *fourth, *(f"walk.4.{key}" for key in told)],
        ["walk.5.body", "walk.5.choose"],
    ][step]


def _look_key(step: int, chosen: Configuration, fourth: list[str]) -> str:
    if step == 0 and chosen.sessions is Sessions.SHARED:
        return "walk.0.look.shared"
    if step == 2:
        return f"walk.2.look.fix_{chosen.continuity}"
    if step == 4:
        told = "answers" if fourth[0] in _ANSWERS else "asks"
        return f"walk.4.look.{'surprise' if fourth[0] == _SURPRISE else told}"
    return f"walk.{step}.look"


def narrative(
    step: int,
    chosen: Configuration,
    values: Mapping[str, str],
    translate: Callable[[str], str] = same,
    gap: Gap | None = None,
) -> Narrative:
    """Return the words of a step (0-5) under the run's switches.

    Args:
        step: which.
        chosen: picks the variants; each is a whole sentence with its own id.
        values: ``context``, and the letters of the ``first`` and ``second`` replica:
            whether they differ picks the variant of step 4, not affinity.
        translate: ``gettext`` on a page.
        gap: where the whole run left the rule; None while it did not.
    """
    moves = values["first"] != values["second"]
    fourth = _fourth(chosen, moves, gap is not None)
    if gap is not None:
        said = zip(("predicted", "measured"), gap, strict=True)
        values = {**values, **{k: sentence(word, translate) for k, word in said}}

    def say(key: str) -> str:
        return translate(TEXTS[key]) % values

    return Narrative(
        step,
        say(f"walk.{step}.title"),
        tuple(say(key) for key in _paragraph_keys(step, chosen, fourth)),
        say(_look_key(step, chosen, fourth)),
        say(f"walk.{step}.ask"),
        say(f"walk.{step}.holds"),
    )
