"""Token buckets."""

from __future__ import annotations

import pytest

from billing_agent.identity.limits import RateLimiter


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def limiter(clock, rate=2, burst=3, subjects=10):
    return RateLimiter(rate, burst, subjects=subjects, clock=clock)


def test_burst_passes_then_waits():
    bucket = limiter(Clock())
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_waiting_fills_the_bucket():
    clock = Clock()
    bucket = limiter(clock)
    for _ in range(4):
        bucket.take("a")
    clock.now = 0.5
    assert bucket.take("a") == 0


def test_bucket_never_holds_more_than_the_burst():
    clock = Clock()
    bucket = limiter(clock)
    bucket.take("a")
    clock.now = 1000
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_refused_requests_cost_nothing():
    clock = Clock()
    bucket = limiter(clock)
    for _ in range(100):
        bucket.take("a")
    clock.now = 0.5
    assert bucket.take("a") == 0


def test_subjects_do_not_share():
    bucket = limiter(Clock(), burst=1)
    assert bucket.take("a") == bucket.take("b") == 0
    assert bucket.take("a") > 0


def test_number_of_buckets_is_bounded():
    bucket = limiter(Clock(), burst=1, subjects=2)
    for subject in "abc":
        bucket.take(subject)
    assert bucket.take("a") == 0
    assert bucket.take("c") > 0


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_limits_that_let_nothing_pass_are_refused(rate, burst):
    with pytest.raises(ValueError, match="rate"):
        RateLimiter(rate, burst)
