"""Events of recently read sessions, so that a long conversation is parsed once."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass

from google.adk.events.event import Event
from pydantic import TypeAdapter

# Bytes of one process. A session of 1,200 events takes about one million.
LIMIT = 32 * 2**20

_events = TypeAdapter(list[Event])

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A session's events up to a revision, frozen.

    ``row`` is the session's primary key: a session deleted and created again under
    its old name has another. Every ``thaw`` makes objects of its own, so no reader
    can change what another one sees.
    """

    row: int = 0
    revision: int = 0
    chunks: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        """Bytes it takes."""
        return sum(map(len, self.chunks))

    def thaw(self) -> list[Event]:
        """Return the events as new objects; faster than copying live ones."""
        events: list[Event] = []
        for chunk in self.chunks:
            events += pickle.loads(chunk)  # noqa: S301 - made below, never stored
        return events

    def extended(self, row: int, revision: int, tail: list[Event]) -> Prefix:
        """Return the prefix up to a later revision, or a new one for another row."""
        chunks = self.chunks if row == self.row else ()
        if tail:
            chunks += (pickle.dumps(tail, pickle.HIGHEST_PROTOCOL),)
        return Prefix(row, revision, chunks)


class History:
    """The prefixes of the sessions read last, within ``limit`` bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._prefixes: OrderedDict[Key, Prefix] = OrderedDict()

    def get(self, key: Key) -> Prefix:
        """Return what is known of a session; an empty prefix when nothing is."""
        if key not in self._prefixes:
            return Prefix()
        self._prefixes.move_to_end(key)
        return self._prefixes[key]

    def keep(self, key: Key, prefix: Prefix) -> None:
        """Replace what is known of a session; the least recently read make room."""
        self.drop(key)
        if prefix.size > self._limit:
            return
        self._prefixes[key] = prefix
        self._size += prefix.size
        while self._size > self._limit:
            self.drop(next(iter(self._prefixes)))

    def drop(self, key: Key) -> None:
        """Forget a session."""
        prefix = self._prefixes.pop(key, None)
        if prefix is not None:
            self._size -= prefix.size


def parse(bodies: str | None) -> list[Event]:
    """Return the events of stored bodies joined by commas."""
    return _events.validate_json(f"[{bodies}]") if bodies else []
