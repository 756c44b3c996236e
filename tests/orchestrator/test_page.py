"""Places and moves, without Django."""

from __future__ import annotations

import pytest

from orchestrator.config import Configuration
from orchestrator.fold import fold
from orchestrator.page import (
    Move,
    Place,
    Status,
    canonical,
    first_event,
    last_event,
    next_event,
    next_step,
    previous_event,
    view,
)
from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded

WHOLE = tuple(recorded())
ASKED = tuple(first_turn(Recording(), Happened()).events)


def page(events, step, event=None, claimed=None):
    return view(events, Configuration(), Place(step, event), claimed)


def failed():
    recording = Recording()
    recording.sent("Why?").verified("router").failed()
    return tuple(recording.events)


def test_a_step_shows_its_newest_event():
    shown = page(WHOLE, 2)
    assert shown.scene.cursor == shown.rows[-1].seq
    assert {row.step for row in shown.rows} == {2}
    assert not shown.live


def test_an_event_of_a_step_leaves_the_later_ones_on_the_list():
    rows = page(WHOLE, 2).rows
    shown = page(WHOLE, 2, rows[0].seq)
    assert shown.scene.cursor == rows[0].seq
    assert shown.rows == rows


def test_a_step_without_events_shows_what_came_before():
    shown = page(ASKED, 4)
    assert shown.scene.cursor == len(ASKED)
    assert shown.rows == ()


def test_a_known_event_decides_its_step():
    recorded_scene = fold(WHOLE, Configuration())
    assert canonical(Place(1, len(WHOLE)), recorded_scene) == Place(4, len(WHOLE))


def test_an_event_beyond_the_last_is_the_last():
    recorded_scene = fold(ASKED, Configuration())
    assert canonical(Place(3, 999), recorded_scene) == Place(3, len(ASKED))


def test_event_zero_is_the_start():
    assert canonical(Place(3, 0), fold(ASKED, Configuration())) == Place(0)


def test_next_goes_through_every_event_then_rests_at_the_last_step():
    seen, place = [], Place(0)
    while True:
        move = next_event(view(WHOLE, Configuration(), place))
        if move.place is None:
            break
        place = move.place
        seen.append(place.event)
    assert seen == [*range(1, len(WHOLE) + 1), None]
    assert place == Place(5)
    assert move.rests


def test_back_returns_on_the_same_way():
    seen, place = [], Place(5)
    while (move := previous_event(view(WHOLE, Configuration(), place))).place:
        place = move.place
        seen.append(place.event)
    assert seen == [*range(len(WHOLE), 0, -1), None]
    assert place == Place(0)


@pytest.mark.parametrize("step", [0, 1])
def test_a_fresh_run_sends_the_question(step):
    assert next_event(page((), step)) == Move(turn=1)


def test_after_the_question_came_back_next_sends_the_reply():
    assert next_event(page(ASKED, 3)) == Move(turn=2)
    assert next_step(page(ASKED, 3)) == Move(turn=2)


def test_a_step_ahead_that_is_recorded_is_gone_to():
    assert next_step(page(ASKED, 1)) == Move(Place(2))


def test_a_step_a_turn_will_fill_is_gone_to_while_it_runs():
    assert next_step(page(WHOLE[:2], 1, claimed=1)) == Move(Place(2))
    assert next_step(page(WHOLE[:2], 3, claimed=1)).rests


def test_nothing_more_is_sent_while_a_turn_is_on_its_way():
    assert next_event(page(WHOLE[:5], 2, claimed=1)).rests
    assert next_event(page((), 1, claimed=1)).rests


def test_a_failed_turn_is_retried_by_its_own_button_only():
    shown = page(failed(), 1)
    assert shown.status is Status.FAILED
    assert next_event(shown).rests
    assert next_step(shown).rests


def test_after_turn_two_next_leads_to_the_last_step():
    assert next_event(page(WHOLE, 4)) == Move(Place(5))
    assert next_event(page(WHOLE, 5)).rests


def test_a_third_message_is_sent_by_its_own_button_only():
    assert next_step(page(WHOLE, 5)) == Move(turn=3)
    assert next_step(page(WHOLE, 5, claimed=3)).rests
    assert next_step(page(failed(), 5)).rests


def test_first_and_last_lead_to_the_ends():
    assert first_event(page(WHOLE, 4)) == Move(Place(1, 1))
    assert last_event(page(WHOLE, 1)) == Move(Place(4))
    assert first_event(page((), 0)).rests
    assert last_event(page((), 0)).rests


def test_sending_leads_to_where_the_turn_begins_to_show():
    assert Move(turn=1).after_sending() == Move(Place(1))
    assert Move(turn=2).after_sending() == Move(Place(4))
    assert Move(Place(3)).after_sending() == Move(Place(3))


@pytest.mark.parametrize(
    ("events", "claimed", "status"),
    [
        ((), None, Status.FRESH),
        ((), 1, Status.RUNNING),
        (ASKED, None, Status.ASKED),
        (ASKED, 2, Status.RUNNING),
        (WHOLE, None, Status.ENDED),
    ],
)
def test_the_status_of_a_run(events, claimed, status):
    assert page(events, 0, claimed=claimed).status is status
