"""The routing arithmetic."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_agent.router.routing import (
    Choice,
    Conversation,
    Turns,
    choose,
    route,
    scores,
)

A, B = REPLICAS = ["replica-a", "replica-b"]
contexts = st.text(min_size=1)
names = st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True)


@pytest.mark.parametrize("order", [REPLICAS, REPLICAS[::-1]])
def test_ctx_41_belongs_to_replica_b(order):
    assert route("ctx-41", order) == B


def test_score_is_the_digest_of_context_and_replica():
    digest = hashlib.sha256(b"ctx-41:replica-a").hexdigest()
    assert scores("ctx-41", REPLICAS)[A] == digest


@given(contexts, names)
def test_highest_digest_wins(context_id, replicas):
    digests = scores(context_id, replicas)
    assert digests[route(context_id, replicas)] == max(digests.values())


@given(contexts, names, st.data())
def test_replica_that_leaves_moves_only_its_own(context_id, replicas, data):
    gone = data.draw(st.sampled_from(replicas))
    left = [replica for replica in replicas if replica != gone]
    if left and route(context_id, replicas) != gone:
        assert route(context_id, left) == route(context_id, replicas)


def test_contexts_spread_over_the_replicas():
    shares = [route(f"ctx-{number}", REPLICAS) for number in range(1000)]
    assert 400 < shares.count(A) < 600


def test_affinity_chooses_by_digest():
    assert choose("ctx-41", REPLICAS) == Choice(
        B, "affinity", scores("ctx-41", REPLICAS)
    )


def test_turn_chooses_against_the_digest_and_shows_it():
    assert choose("ctx-41", REPLICAS, wanted=A) == Choice(
        A, "turn", scores("ctx-41", REPLICAS)
    )


def test_request_about_no_context_goes_anywhere():
    assert choose("", REPLICAS) == Choice(A, "any")


@pytest.mark.parametrize(
    ("context_id", "wanted", "down", "reason"),
    [
        ("ctx-41", None, {B}, "affinity, replica-b is down"),
        ("ctx-41", B, {B}, "turn, replica-b is down"),
    ],
)
def test_next_one_takes_over_and_says_so(context_id, wanted, down, reason):
    choice = choose(context_id, REPLICAS, wanted=wanted, down=down)
    assert (choice.replica, choice.reason) == (A, reason)


def test_any_other_takes_a_request_about_no_context():
    choice = choose("", REPLICAS, down={A})
    assert choice == Choice(B, "any, replica-a is down")


def test_next_highest_digest_takes_over():
    replicas = ["a", "b", "c", "d"]
    first = route("ctx", replicas)
    left = [replica for replica in replicas if replica != first]
    assert choose("ctx", replicas, down={first}).replica == route("ctx", left)


def test_replica_that_is_down_and_not_wanted_changes_nothing():
    assert choose("ctx-41", REPLICAS, down={A}).reason == "affinity"


@pytest.mark.parametrize("context_id", ["", "ctx-41"])
def test_nothing_is_chosen_when_all_are_down(context_id):
    assert choose(context_id, REPLICAS, down={A, B}) is None


HERE = Conversation("someone", "ctx-41")


def taken(turns, *conversations, replicas=REPLICAS):
    return [turns.next(conversation, replicas) for conversation in conversations]


def test_turns_start_at_the_second_replica():
    assert taken(Turns(), HERE, HERE, HERE) == [B, A, B]


def test_single_replica_takes_every_turn():
    assert taken(Turns(), HERE, HERE, replicas=[A]) == [A, A]


def test_three_replicas_take_turns():
    assert taken(Turns(), HERE, HERE, HERE, HERE, replicas=["a", "b", "c"]) == [
        *("b", "c", "a", "b")
    ]


def test_same_context_of_another_caller_is_another_conversation():
    other = Conversation("someone else", "ctx-41")
    assert taken(Turns(), HERE, other, HERE) == [B, B, A]


def test_asking_who_was_last_advances_nothing():
    turns = Turns()
    assert turns.last(HERE) is None
    turns.next(HERE, REPLICAS)
    assert turns.last(HERE) == turns.last(HERE) == B
    assert turns.next(HERE, REPLICAS) == A


def test_last_is_who_really_took_the_send():
    turns = Turns()
    turns.next(HERE, REPLICAS)
    turns.took(HERE, A)
    assert turns.last(HERE) == A
    assert turns.next(HERE, REPLICAS) == A


def test_send_that_had_no_turn_is_remembered_too():
    turns = Turns()
    turns.took(HERE, A)
    assert turns.last(HERE) == A
    assert turns.next(HERE, REPLICAS) == B


def test_conversations_remembered_are_bounded():
    turns = Turns(kept=1)
    turns.next(HERE, REPLICAS)
    turns.next(Conversation("someone", "other"), REPLICAS)
    assert turns.last(HERE) is None
