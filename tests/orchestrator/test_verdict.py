"""The verdict, measured from recorded runs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.config import Configuration
from orchestrator.events import Kind
from orchestrator.recall import lookups
from orchestrator.report import report
from orchestrator.sentences import sentence
from orchestrator.verdict import verdict
from tests.orchestrator.recordings import (
    ANSWER,
    QUESTION,
    Happened,
    Recording,
    first_turn,
    recorded,
    second_turn,
)

A, B = "replica-a", "replica-b"
GENERATED = ("9e1e0d", "77ab21")
# What a run of each configuration does, by the truth table of the story.
RUNS = {
    "memory off off": Happened("memory", False, False, (B, A), GENERATED, False),
    "memory off on": Happened("memory", False, True, (B, B), GENERATED, False),
    "memory on off": Happened("memory", True, False, (B, A), found=False),
    "memory on on": Happened(),
    "shared off off": Happened("shared", False, False, (B, A), GENERATED, False),
    "shared off on": Happened("shared", False, True, (B, B), GENERATED, False),
    "shared on off": Happened("shared", True, False, (B, A)),
    "shared on on": Happened("shared"),
}
SENTENCES = {
    "memory off off": "Forgot. Another replica and a generated id: either alone would"
    " be enough.",
    "memory off on": "Forgot. Right replica, wrong key: the lookup asked for ctx-41,"
    " the stored session has a generated id.",
    "memory on off": "Forgot. Session ctx-41 is on B; turn 2 reached A, which started"
    " a second ctx-41 and saw 1 event.",
    "memory on on": "Remembered. Turn 2 reached replica B, found session ctx-41 and"
    " saw 5 events.",
    "shared off off": "Forgot. A generated id: sharing the store does not help a"
    " lookup by another name.",
    "shared off on": "Forgot. Right replica, wrong key: the lookup asked for ctx-41,"
    " the stored session has a generated id.",
    "shared on off": "Remembered on another replica. History is shared, the running"
    " work is not: try cancel.",
    "shared on on": "Remembered. Turn 2 found session ctx-41 in the shared store and"
    " saw 5 events.",
}


def chosen(row, output="per-run"):
    names = ("sessions", "continuity", "affinity")
    values = dict(zip(names, row.split(), strict=True))
    return Configuration.parse(values | {"output": output})


DEFAULT = chosen("memory on on")


@pytest.mark.parametrize("row", RUNS)
def test_each_row_of_the_table_has_its_sentence(row):
    found = verdict(recorded(RUNS[row]), chosen(row))
    assert found.sentence == SENTENCES[row]
    assert found.as_predicted is True


@pytest.mark.parametrize("row", RUNS)
def test_what_is_measured_is_what_happened(row):
    happened = RUNS[row]
    found = verdict(recorded(happened), chosen(row))
    assert found.outcome == ("answers" if happened.found else "asks")
    assert found.path == tuple(name[-1].upper() for name in happened.replicas)
    assert found.events_seen == (1, 5 if happened.found else 1)
    assert found.sessions == (1 if happened.found else 2)
    assert found.asked_back == (1 if happened.found else 2)
    assert found.tenant == "acme"


def test_a_quiet_run_releases_one_artifact_and_nothing_else():
    released = verdict(recorded(), DEFAULT).released
    assert (released.artifacts, released.intermediate, released.bytes) == (1, 0, 200)


def test_a_noisy_run_releases_its_remark():
    events = recorded(Happened(noisy=True))
    released = verdict(events, chosen("memory on on", "per-event")).released
    assert (released.artifacts, released.intermediate, released.bytes) == (3, 1, 400)


def test_a_run_that_asks_again_releases_no_artifact():
    released = verdict(recorded(RUNS["memory off on"]), DEFAULT).released
    assert (released.artifacts, released.intermediate, released.bytes) == (0, 0, 0)


def test_an_intermediate_message_is_released_too():
    recording = first_turn(Recording(), Happened())
    recording.sent("The compute line.", "task-1")
    recording.received(B, state="TASK_STATE_WORKING", text="let me see", size=70)
    recording.artifact(B, "x", ANSWER, size=30)
    released = verdict(recording.events, DEFAULT).released
    assert (released.artifacts, released.intermediate, released.bytes) == (1, 1, 100)


def test_texts_before_a_question_are_all_intermediate():
    recording = first_turn(Recording(), Happened())
    recording.sent("The compute line.", "task-1").artifact(B, "x", "thinking")
    recording.received(B, state="TASK_STATE_INPUT_REQUIRED", text=QUESTION)
    assert verdict(recording.events, DEFAULT).released.intermediate == 1


def test_the_task_states_are_those_received():
    assert verdict(recorded(), DEFAULT).task_states == (
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_COMPLETED",
    )


@pytest.mark.parametrize("events", [[], first_turn(Recording(), Happened()).events])
def test_nothing_is_decided_before_turn_2(events):
    found = verdict(events, DEFAULT)
    assert found.sentence == "Not decided yet. Turn 2 decides."
    assert (found.outcome, found.as_predicted, found.switches) == (None, None, ())
    assert sentence(found.switch_phrase) == "Turn 2 decides."


def test_no_session_is_counted_before_the_ledger_is_read():
    recording = Recording().sent("Why?").created(B, "memory", "ctx-41")
    assert verdict(recording.events, DEFAULT).sessions is None


def test_sessions_are_counted_from_the_ledger_not_from_what_was_announced():
    events = [event for event in recorded() if event.kind is not Kind.SESSION_CREATED]
    assert verdict(events, DEFAULT).sessions == 1


def test_sessions_of_another_user_do_not_count():
    events = recorded()
    last = [event for event in events if event.kind is Kind.LEDGER_READ][-1]
    for store in last.data["stores"]:
        for session in store["sessions"]:
            session["user"] = "A2A_USER_ctx-42"
    assert verdict(events, DEFAULT).sessions == 0


def test_the_router_s_choice_is_the_path_until_the_answer_comes():
    recording = Recording().sent("Why?").chosen(A)
    assert verdict(recording.events, DEFAULT).path == ("A",)


SURPRISES = {
    "outcome": (
        "memory on on",
        RUNS["memory off on"],
        'The rule said "answers", the run says "asks".',
    ),
    "moved": (
        "shared on on",
        RUNS["shared on off"],
        'The rule said "the same replica", the run says "another replica".',
    ),
    "stayed": (
        "shared on off",
        RUNS["shared on on"],
        'The rule said "another replica", the run says "the same replica".',
    ),
    "letters": (
        "memory on on",
        Happened(replicas=(A, A)),
        'The rule said "path B→B", the run says "path A→A".',
    ),
    "sessions": (
        "shared on on",
        Happened("shared", sessions=GENERATED),
        'The rule said "sessions 1", the run says "sessions 2".',
    ),
}


@pytest.mark.parametrize(("row", "happened", "said"), SURPRISES.values(), ids=SURPRISES)
def test_a_run_against_the_rule_is_a_surprise(row, happened, said):
    found = verdict(recorded(happened), chosen(row))
    assert found.as_predicted is False
    assert found.sentence == f"Surprise. {said}"
    assert found.switches == ()
    assert sentence(found.switch_phrase).startswith("The run disagrees")


def test_fewer_events_seen_than_the_rule_says_are_a_surprise():
    events = [
        replace(event, data={**event.data, "events_seen": 4})
        if event.kind is Kind.MODEL_CALLED and event.turn == 2
        else event
        for event in recorded()
    ]
    found = verdict(events, DEFAULT)
    assert 'said "saw 1, 5", the run says "saw 1, 4"' in found.sentence


def test_another_router_may_use_other_letters():
    found = verdict(recorded(Happened(replicas=(A, A), router=False)), DEFAULT)
    assert found.as_predicted is True
    assert "reached replica A" in found.sentence


def test_another_context_may_belong_to_another_replica():
    events = [
        replace(event, data={**event.data, "context_id": "ctx-7"})
        if event.kind is Kind.MESSAGE_SENT
        else event
        for event in recorded(Happened(replicas=(A, A)))
    ]
    found = verdict(events, DEFAULT)
    # The sessions held are those of ctx-41's user, so only the path is as foretold.
    assert 'said "sessions 1", the run says "sessions 0"' in found.sentence


def test_a_router_that_does_not_say_who_answered_leaves_the_path_open():
    events = [
        replace(event, data={**event.data, "replica": ""})
        if event.kind is Kind.EVENT_RECEIVED
        else event
        for event in recorded(Happened(router=False))
    ]
    found = verdict(events, DEFAULT)
    assert found.path == ()
    assert found.as_predicted is True
    assert "reached replica ?" in found.sentence


def test_a_replica_of_another_name_is_called_by_it():
    found = verdict(
        recorded(Happened(replicas=("east", "east"), router=False)), DEFAULT
    )
    assert found.path == ("east", "east")


def test_one_replica_alone_remembers_without_affinity():
    recording = Recording()
    happened = Happened(replicas=(A, A), router=False)
    first_turn(recording, happened)
    second_turn(recording, happened)
    for event in recording.events:
        if event.kind is Kind.LEDGER_READ:
            event.data["stores"] = [
                store for store in event.data["stores"] if store["replica"] != B
            ]
    found = verdict(recording.events, chosen("memory on off"))
    assert found.as_predicted is True
    assert found.sentence.startswith("Remembered. Turn 2 reached replica A")
    assert found.switches == ("continuity",)


def test_a_completed_task_without_an_artifact_neither_answers_nor_asks():
    events = [event for event in recorded() if event.data.get("type") != "artifact"]
    found = verdict(events, DEFAULT)
    assert found.outcome is None
    assert found.as_predicted is False
    assert 'the run says "neither answers nor asks"' in found.sentence


def test_a_failed_turn_2_is_no_verdict():
    recording = first_turn(Recording(), Happened())
    recording.sent("The compute line.", "task-1").failed()
    assert verdict(recording.events, DEFAULT).as_predicted is None


def test_a_turn_sent_again_counts_as_sent_last():
    recording = first_turn(Recording(), Happened())
    recording.sent("The compute line.", "task-1").chosen(A)
    recording.artifact(A, "lost", "half an ans").failed()
    recording.turn = 1
    found = verdict(second_turn(recording, Happened()).events, DEFAULT)
    assert found.path == ("B", "B")
    assert found.released.artifacts == 1
    assert found.as_predicted is True


@pytest.mark.parametrize("calls_before", [1, 2])
def test_a_retry_that_joins_the_work_of_the_first_send_keeps_what_it_saw(calls_before):
    whole = second_turn(first_turn(Recording(), Happened()), Happened()).events
    calls = [
        n for n, e in enumerate(whole) if e.turn == 2 and e.kind is Kind.MODEL_CALLED
    ]
    lost = calls[calls_before - 1] + 1
    recording = Recording([*whole[:lost]], turn=2)
    recording.failed("failed.broken-off").sent("The compute line.", "task-1", turn=2)
    recording.verified("router").chosen(B)
    for event in whole[lost:]:
        recording.add(event.part, event.kind, **event.data)
    found = verdict(recording.events, DEFAULT)
    assert found.events_seen == (1, 5)
    assert found.as_predicted is True
    assert lookups(recording.events)[-1].found


def test_a_third_turn_changes_nothing():
    recording = Recording(recorded(), turn=2)
    before = verdict(recording.events, DEFAULT)
    recording.sent("And the storage line?").chosen(A)
    recording.model(A, 1, "ctx-41", ["user: and"]).verified(A, "globex")
    recording.ledger({A: [("ctx-41", 2)], B: [("ctx-41", 6)]})
    assert verdict(recording.events, DEFAULT) == before


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("memory on on", "Either would: continuity fix off, or affinity off."),
        ("memory on off", "Either would: affinity on, or sessions shared."),
        ("memory off off", "No single switch: two things are missing."),
        ("shared off on", "One switch would: continuity fix on."),
        ("shared on off", "Either would: continuity fix off, or sessions memory."),
    ],
)
def test_what_would_change_the_outcome_is_said(row, said):
    found = verdict(recorded(RUNS[row]), chosen(row))
    assert sentence(found.switch_phrase) == said.replace(
        "sessions memory", "sessions in memory"
    )


@settings(deadline=None)
@given(st.sampled_from(list(RUNS)), st.booleans(), st.data())
def test_once_decided_a_verdict_stays(row, noisy, data):
    events = recorded(replace(RUNS[row], noisy=noisy))
    cut = data.draw(st.integers(0, len(events)))
    before, after = (verdict(part, chosen(row)) for part in (events[:cut], events))
    assert before.outcome in {None, after.outcome}
    assert before.as_predicted in {None, True}
    assert (before.as_predicted is None) == (cut < len(events))
    assert before.path == after.path[: len(before.path)]
    assert before.events_seen == after.events_seen[: len(before.events_seen)]


@settings(deadline=None)
@given(st.permutations(recorded(Happened(noisy=True))), st.sampled_from(list(RUNS)))
def test_no_order_of_events_makes_it_raise(events, row):
    found = verdict(events, chosen(row))
    assert found.sentence


def test_a_report_is_json_with_the_keys_that_scripts_read():
    found = json.loads(json.dumps(report("r-7k3m", DEFAULT, recorded())))
    assert found["run"] == "r-7k3m"
    assert found["config"] == DEFAULT.as_dict()
    assert (found["outcome"], found["predicted"]) == ("answers", "answers")
    assert found["as_predicted"] is True
    assert (found["path"], found["events_seen"]) == (["B", "B"], [1, 5])
    assert found["released"] == {"artifacts": 1, "intermediate": 0, "bytes": 200}
    assert found["lookup"] == {
        "asked_for": "ctx-41",
        "found": True,
        "stored_as": "ctx-41",
    }
    assert found["duration_ms"] == 240
    assert {"sessions", "task_states", "tenant", "sentence"} <= found.keys()


def test_a_report_before_turn_2_has_no_lookup():
    assert report("r-7k3m", DEFAULT, [])["lookup"] is None
