"""The switches of a run, as one frozen value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import product


class Toggle(StrEnum):
    """A switch with two positions."""

    ON = "on"
    OFF = "off"


class Output(StrEnum):
    """What leaves the agent: the final result only, or every event."""

    PER_RUN = "per-run"
    PER_EVENT = "per-event"


class Sessions(StrEnum):
    """Where a replica keeps its sessions."""

    MEMORY = "memory"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The four switches of one run; the defaults are where the story starts."""

    continuity: Toggle = Toggle.ON
    affinity: Toggle = Toggle.ON
    output: Output = Output.PER_RUN
    sessions: Sessions = Sessions.MEMORY

    @classmethod
    def parse(cls, values: dict[str, str]) -> Configuration:
        """Read switches from text; what is left out keeps its default.

        Raises:
            ValueError: a value a switch does not have; the message names both.
        """
        kinds = {
            "continuity": Toggle,
            "affinity": Toggle,
            "output": Output,
            "sessions": Sessions,
        }
        chosen: dict[str, StrEnum] = {}
        for name, kind in kinds.items():
            if name in values:
                try:
                    chosen[name] = kind(values[name])
                except ValueError:
                    known = ", ".join(kind)
                    raise ValueError(
                        f"{name} is one of {known}, not {values[name]!r}"
                    ) from None
        return replace(cls(), **chosen)  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, str]:
        """Return the switches as plain text, in their fixed order."""
        return {name: str(value) for name, value in asdict(self).items()}

    def flipped(self, name: str) -> Configuration:
        """Return this configuration with one switch in its other position.

        Raises:
            KeyError: there is no switch of that name.
        """
        current = self.as_dict()[name]
        kind = type(getattr(self, name))
        other = next(value for value in kind if value != current)
        return replace(self, **{name: other})


def every_configuration() -> list[Configuration]:
    """Return the sixteen combinations, in the order of the matrix."""
    return [
        Configuration(continuity, affinity, output, sessions)
        for sessions, output, continuity, affinity in product(
            Sessions, Output, reversed(Toggle), reversed(Toggle)
        )
    ]
