"""Which replica a request goes to: arithmetic on names, without any state of theirs.

Rendezvous hashing (Thaler and Ravishankar, 1998): every replica gets a score for the
context id, the highest wins. A replica that comes or goes moves only the
conversations that it wins or had won.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from billing_agent.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

FIRST_TURN = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """The replica chosen, why, and every replica's digest when one was computed."""

    replica: str
    reason: str
    scores: dict[str, str] = field(default_factory=dict)


def scores(context_id: str, replicas: Sequence[str]) -> dict[str, str]:
    """Return each replica's score: SHA-256 of ``context_id:replica`` in hex."""
    return {
        replica: hashlib.sha256(f"{context_id}:{replica}".encode()).hexdigest()
        for replica in replicas
    }


def route(context_id: str, replicas: Sequence[str]) -> str:
    """Return the replica that the conversation belongs to: the highest score."""
    return _highest(scores(context_id, replicas))


def _highest(digests: dict[str, str]) -> str:
    return max(digests, key=digests.__getitem__)


def choose(
    context_id: str,
    replicas: Sequence[str],
    *,
    wanted: str | None = None,
    down: Set[str] = frozenset(),
) -> Choice | None:
    """Return the replica to try, None when all are down.

    Args:
        context_id: the conversation; empty when the request is about none, and then
            any replica will do.
        replicas: their names, in the order of the settings.
        wanted: a replica chosen by something else than the digests: the turn.
        down: the replicas found down so far.
    """
    up = [replica for replica in replicas if replica not in down]
    if not up:
        return None
    digests = scores(context_id, replicas) if context_id else {}
    first = wanted or (_highest(digests) if digests else replicas[0])
    reason = "turn" if wanted else "affinity" if digests else "any"
    if first in up:
        return Choice(first, reason, digests)
    left = {replica: digests[replica] for replica in up if digests}
    return Choice(
        _highest(left) if left else up[0], f"{reason}, {first} is down", digests
    )


class Conversation(NamedTuple):
    """Who talks, and in which context: the same context id of two callers is two."""

    subject: str
    context_id: str


class Turns:
    """Takes the replicas turn by turn within a conversation.

    It starts at the second replica, so that a replay is deterministic and the story's
    first turn is at B.

    Args:
        kept: how many conversations are remembered; the one unused longest is
            forgotten and would start again.
    """

    def __init__(self, kept: int = 10_000) -> None:
        self._taken: Recent[Conversation, tuple[int, str]] = Recent(kept)

    def next(self, conversation: Conversation, replicas: Sequence[str]) -> str:
        """Advance by one send and return the replica whose turn it is."""
        count, _ = self._taken.recall(conversation) or (0, "")
        replica = replicas[(FIRST_TURN + count) % len(replicas)]
        self._taken.keep(conversation, (count + 1, replica))
        return replica

    def took(self, conversation: Conversation, replica: str) -> None:
        """Note which replica really took the last send."""
        count, _ = self._taken.recall(conversation) or (0, "")
        self._taken.keep(conversation, (count, replica))

    def last(self, conversation: Conversation) -> str | None:
        """Return the replica that took the conversation's last send."""
        taken = self._taken.recall(conversation)
        return taken[1] if taken else None
