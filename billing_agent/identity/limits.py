"""How fast one subject may send: a token bucket for each, bounded in number."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from billing_agent.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable


class RateLimiter:
    """Token buckets by subject.

    Args:
        rate: requests per second a subject may keep up.
        burst: requests it may send at once.
        subjects: how many buckets are kept; the one unused longest is dropped, which
            gives its subject a full one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        subjects: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError("rate must be above 0 and burst at least 1")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: Recent[str, tuple[float, float]] = Recent(subjects)

    def take(self, subject: str) -> float:
        """Take one request; return 0 when it may pass, else the seconds to wait."""
        now = self._clock()
        left, since = self._buckets.recall(subject) or (float(self._burst), now)
        left = min(self._burst, left + (now - since) * self._rate)
        passes = left >= 1
        self._buckets.keep(subject, (left - passes, now))
        return 0.0 if passes else (1 - left) / self._rate
