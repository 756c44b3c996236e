"""What a page shows at each event of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.config import Configuration
from orchestrator.events import Kind
from orchestrator.fold import fold
from orchestrator.scene import Progress, Shape, part
from orchestrator.sentences import ENGLISH, Phrase, sentence
from tests.orchestrator.recordings import (
    ANSWER,
    DATA,
    QUESTION,
    REMARK,
    Happened,
    Recording,
    first_turn,
    recorded,
)

A, B = "replica-a", "replica-b"
SWITCHES = Configuration()
FORGOT = Happened("memory", False, False, (B, A), ("9e1e0d", "77ab21"), False)


def scene(events):
    return fold(events, SWITCHES)


def said(recording):
    return sentence(scene(recording.events).rows[-1].phrase)


def asked():
    return first_turn(Recording(), Happened())


# Any prefix, any order


@settings(deadline=None)
@given(st.integers(0, 200))
def test_a_row_never_changes_when_more_events_follow(cut):
    events = recorded(Happened(noisy=True))
    rows = scene(events).rows
    assert scene(events[:cut]).rows == rows[:cut]


@settings(deadline=None)
@given(st.permutations(recorded(Happened(noisy=True))))
def test_no_order_of_events_makes_it_raise(events):
    shown = scene(events)
    assert len(shown.rows) == len(events)
    assert all(sentence(row.phrase) for row in shown.rows)
    steps = [row.step for row in shown.rows]
    assert steps == sorted(steps)


def test_the_same_events_give_the_same_scene():
    assert scene(recorded()) == scene(recorded())


# Steps


def test_before_the_first_event_the_page_is_at_step_0():
    shown = scene([])
    assert (shown.cursor, shown.step, shown.context_id) == (0, 0, "")
    assert [step.progress for step in shown.steps] == [
        Progress.CURRENT,
        *[Progress.AHEAD] * 5,
    ]
    assert shown.next_turn == 1
    assert shown.ledger is None


def test_each_part_of_the_story_has_its_step():
    shown = scene(recorded())
    first = {}
    for row in shown.rows:
        first.setdefault(row.step, (row.turn, row.kind))
    assert first == {
        1: (1, Kind.MESSAGE_SENT),
        2: (1, Kind.REPLICA_CHOSEN),
        3: (1, Kind.MODEL_CALLED),
        4: (2, Kind.MESSAGE_SENT),
    }


def test_steps_count_their_events_and_know_their_cursor():
    shown = scene(asked().events)
    counts = [step.events for step in shown.steps]
    assert counts[0] == counts[4] == counts[5] == 0
    assert sum(counts) == shown.cursor
    assert [step.progress for step in shown.steps] == [
        *[Progress.DONE] * 3,
        Progress.CURRENT,
        *[Progress.AHEAD] * 2,
    ]
    assert shown.steps[0].last_seq == 0
    assert shown.steps[1].last_seq == counts[1]
    assert shown.steps[5].last_seq == shown.cursor


def test_a_third_turn_is_step_5():
    recording = Recording(recorded(), turn=2).sent("And the storage line?")
    shown = scene(recording.events)
    assert shown.step == 5
    recording.ended(B, "TASK_STATE_COMPLETED")
    assert scene(recording.events).next_turn is None


def test_events_before_any_message_are_step_0():
    assert scene(Recording().ledger({B: []}).events).step == 0


def test_a_failure_stays_in_the_step_it_happened_in():
    assert scene(Recording().sent("Why?").failed().events).step == 1


# The event list


SAID = [
    (Recording().sent("Why?"), 'message "Why?", context ctx-41'),
    (Recording().verified("router"), "token verified, tenant key stamped: acme"),
    (Recording().chosen(B), "router to B: highest score for this context"),
    (Recording().chosen(A, affinity=False), "router to A: turn by turn"),
    (
        Recording().chosen(A, reason="affinity, replica-b is down"),
        "router to A: the context belongs to B, which is down",
    ),
    (
        Recording().chosen(B, affinity=False, reason="turn, replica-a is down"),
        "router to B: turn, replica-a is down",
    ),
    (
        Recording().chosen(A, reason="any", replicas=()),
        "router to A: any",
    ),
    (
        Recording().looked_up(B, "memory", by="lookup"),
        "session: looked up ctx-41, not found",
    ),
    (
        Recording().looked_up(B, "memory", True, 1, "lookup"),
        "session: looked up ctx-41, found, 1 event",
    ),
    (
        Recording().looked_up(B, "memory", True, 4, "lookup"),
        "session: looked up ctx-41, found, 4 events",
    ),
    (
        Recording().looked_up(B, "memory"),
        "continuity fix: looked up ctx-41, not found",
    ),
    (
        Recording().looked_up(B, "memory", True, None),
        "continuity fix: looked up ctx-41, found",
    ),
    (
        Recording().created(B, "memory", "ctx-41"),
        "continuity fix: created session ctx-41",
    ),
    (
        Recording().created(B, "memory", "9e1e0d", "lookup"),
        "session: created 9e1e0d",
    ),
    (Recording().model(B, 1, "ctx-41", ["a"]), "model call 1: sees 1 event"),
    (Recording().model(B, 2, "ctx-41", "abc"), "model call 2: sees 3 events"),
    (Recording().tool(B), "tool get_invoice for tenant acme"),
    (Recording().tool(B, tenant=""), "tool get_invoice without a verified tenant"),
    (Recording().state(B, "TASK_STATE_WORKING"), "task: working"),
    (Recording().state(B, "TASK_STATE_NEW_ONE"), "task: TASK_STATE_NEW_ONE"),
    (
        Recording().add(B, Kind.ARTIFACT_RELEASED, size=120),
        "artifact released: 120 bytes",
    ),
    (
        Recording().add(B, Kind.CANCEL_HEARD, through="channel"),
        "cancel heard: through the channel, the run stops",
    ),
    (
        Recording().add(B, Kind.CANCEL_HEARD, through="request"),
        "cancel heard: by request, the run stops",
    ),
    (
        Recording().received(B, "task", "TASK_STATE_SUBMITTED"),
        "task received: submitted",
    ),
    (
        Recording().received(B, state="TASK_STATE_COMPLETED"),
        "status received: completed",
    ),
    (
        Recording().received(B, state="TASK_STATE_INPUT_REQUIRED", text="Which?"),
        'question received: "Which?"',
    ),
    (Recording().received(B, text="hm"), 'intermediate text received: "hm"'),
    (Recording().received(B, "message"), "empty message received"),
    (Recording().artifact(B, "x", "a", "b"), 'artifact received: "a b"'),
    (Recording().artifact(B, "x", data=[DATA]), "artifact received: data"),
    (Recording().ledger({B: [("ctx-41", 4)]}), "stores read: 1 session held"),
    (Recording().ledger({A: [], B: []}), "stores read: 0 sessions held"),
    (
        Recording(turn=2).ended(B, "TASK_STATE_COMPLETED"),
        "turn 2 ended: completed, 120 ms",
    ),
    (
        Recording().failed(),
        "failed: The billing agent could not be reached. (error id 0123456789ab)",
    ),
    (
        Recording().failed("failed.by-a-newer-version"),
        "failed: Something went wrong on our side. (error id 0123456789ab)",
    ),
    (Recording().sent("100 % sure?"), 'message "100 % sure?", context ctx-41'),
]


@pytest.mark.parametrize(("recording", "text"), SAID, ids=[text for _, text in SAID])
def test_an_event_says_what_happened(recording, text):
    assert said(recording) == text


def test_every_kind_of_event_has_a_sentence():
    assert {row.events[-1].kind for row, _ in SAID} == {*Kind}


def test_a_translation_sees_the_text_before_its_values():
    phrase = scene(Recording().sent("Why?").failed().events).rows[-1].phrase
    texts = []

    def translate(text):
        texts.append(text)
        return (
            text.upper()
            .replace("%(SENTENCE)S", "%(sentence)s")
            .replace("%(ERROR_ID)S", "%(error_id)s")
        )

    assert sentence(phrase, translate).startswith("FAILED: THE BILLING AGENT")
    assert set(texts) <= set(ENGLISH.values())


def test_a_sentence_without_a_value_it_names_is_an_error():
    with pytest.raises(KeyError):
        sentence(Phrase("row.session-created.hook"))


@pytest.mark.parametrize(
    ("recording", "ends", "wire"),
    [
        (Recording().sent("?"), ("orchestrator", "filter"), "SendStreamingMessage"),
        (Recording().verified("router"), ("filter", "router"), "Authorization"),
        (Recording().verified(B), (B, B), "Authorization"),
        (Recording().chosen(B), ("router", B), "X-Replica"),
        (Recording().looked_up(B, "memory"), (B, B), ""),
        (Recording().looked_up(B, "shared"), (B, "store"), ""),
        (Recording().created(A, "shared", "x"), (A, "store"), ""),
        (
            Recording().received(B, state="TASK_STATE_WORKING"),
            (B, "orchestrator"),
            "TASK_STATE_WORKING",
        ),
        (
            Recording().received("", state="TASK_STATE_WORKING"),
            ("router", "orchestrator"),
            "TASK_STATE_WORKING",
        ),
        (Recording().artifact(B, "x"), (B, "orchestrator"), "artifactUpdate"),
        (Recording().tool(B), (B, B), ""),
    ],
)
def test_an_event_knows_its_ends_and_its_name_on_the_wire(recording, ends, wire):
    row = scene(recording.events).rows[-1]
    assert (row.source, row.target) == ends
    assert row.wire == wire


def test_replicas_have_letters_and_shapes():
    assert part(A) == part("replica-a")
    assert (part(A).letter, part(A).shape) == ("A", Shape.CIRCLE)
    assert (part(B).letter, part(B).shape) == ("B", Shape.SQUARE)
    assert (part("replica-c").letter, part("replica-c").shape) == ("C", Shape.TRIANGLE)
    assert part("orchestrator").shape == Shape.DIAMOND
    assert (part("router").letter, part("router").shape) == ("", Shape.HEXAGON)


# The drawing


def lit(recording):
    drawing = scene(recording.events).topology
    nodes = [node.name for node in drawing.nodes if node.lit]
    return nodes, [(edge.source, edge.target) for edge in drawing.edges if edge.lit]


def test_nothing_is_lit_before_the_first_event():
    assert lit(Recording()) == ([], [])


def test_a_message_lights_the_line_it_travels():
    assert lit(Recording().sent("Why?")) == (
        ["orchestrator", "filter"],
        [("orchestrator", "filter")],
    )
    assert lit(Recording().chosen(B)) == (["router", B], [("router", B)])


def test_an_answer_passes_router_and_filter():
    nodes, edges = lit(Recording().received(B, state="TASK_STATE_WORKING"))
    assert nodes == ["orchestrator", B]
    assert edges == [
        ("orchestrator", "filter"),
        ("filter", "router"),
        ("router", B),
    ]


def test_what_stays_inside_a_part_lights_no_line():
    assert lit(Recording().model(B, 1, "ctx-41", ["a"])) == ([B], [])


def test_a_shared_lookup_lights_the_line_to_the_store():
    assert lit(Recording().looked_up(A, "shared")) == ([A, "store"], [(A, "store")])


def test_parts_show_the_sessions_they_hold():
    recording = Recording().ledger({A: [], B: [("ctx-41", 4)]}, [("9e1e0d", 2)])
    drawn = {node.name: node for node in scene(recording.events).topology.nodes}
    assert drawn[B].sessions == ("ctx-41",)
    assert drawn["store"].sessions == ("9e1e0d",)
    assert drawn[A].sessions == drawn["router"].sessions == ()


def names(recording):
    return {node.name for node in scene(recording.events).topology.nodes}


def test_both_replicas_are_drawn_until_others_are_named():
    assert {A, B} <= names(Recording())
    assert {A, B} <= names(Recording().sent("Why?"))


def test_one_replica_is_drawn_where_there_is_one():
    assert B not in names(Recording().ledger({A: []}))
    assert B not in names(Recording().chosen(A, replicas=("a",)))


# The conversation


def test_the_conversation_is_told_in_order():
    bubbles = scene(recorded()).bubbles
    assert [(bubble.who, bubble.state) for bubble in bubbles] == [
        ("orchestrator", "delivered"),
        ("agent", "question"),
        ("orchestrator", "delivered"),
        ("agent", "answer"),
    ]
    assert [bubble.text for bubble in bubbles][1::2] == [QUESTION, ANSWER]
    assert bubbles[3].data == (DATA,)
    assert bubbles[3].replica == part(B)
    assert bubbles[0].replica is None


def test_a_message_is_sent_until_something_comes_back():
    recording = Recording().sent("Why?")
    assert scene(recording.events).bubbles[0].state == "sent"
    recording.received(B, "task", "TASK_STATE_SUBMITTED")
    bubble = scene(recording.events).bubbles[0]
    assert (bubble.state, bubble.first_seq, bubble.seq) == ("delivered", 1, 2)


def test_every_artifact_of_a_noisy_run_is_a_bubble():
    bubbles = scene(recorded(Happened(noisy=True))).bubbles
    turn = [(b.state, b.text) for b in bubbles if b.turn == 2 and b.who == "agent"]
    assert turn == [("intermediate", REMARK), ("intermediate", ""), ("answer", ANSWER)]


def test_why_a_task_failed_is_no_intermediate_bubble():
    recording = Recording().sent("Why?")
    recording.received(B, state="TASK_STATE_FAILED", text="Agent execution failed.")
    assert scene(recording.events).bubbles[-1].state == "failure"


def test_a_message_on_the_way_is_an_intermediate_bubble():
    recording = Recording().sent("Why?").received("", text="let me see")
    bubble = scene(recording.events).bubbles[-1]
    assert (bubble.state, bubble.text, bubble.replica) == (
        "intermediate",
        "let me see",
        None,
    )


@pytest.mark.case(4)
def test_chunks_grow_one_bubble_and_the_whole_replaces_them():
    recording = Recording().sent("Why?")
    recording.artifact(B, "x", "Com", last_chunk=False)
    recording.artifact(B, "x", "pute", append=True, last_chunk=False)
    bubbles = scene(recording.events).bubbles
    assert [bubble.text for bubble in bubbles] == ["Why?", "Compute"]
    assert scene(recording.events).released[0].artifacts[0].complete is False
    recording.artifact(B, "x", "Compute", "rose", append=False)
    shown = scene(recording.events)
    assert [bubble.text for bubble in shown.bubbles] == ["Why?", "Compute\nrose"]
    assert shown.released[0].artifacts[0].texts == ("Compute", "rose")
    assert shown.released[0].artifacts[0].complete is True


def test_a_chunk_for_an_artifact_never_seen_begins_it():
    recording = Recording().sent("Why?").artifact(B, "x", "late", append=True)
    assert scene(recording.events).bubbles[-1].text == "late"


@pytest.mark.case(5)
def test_text_is_shown_as_it_came():
    text = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne"
    recording = Recording().sent(text).artifact(B, "x", text)
    assert [b.text for b in scene(recording.events).bubbles] == [text, text]
    assert said(recording) == f'artifact received: "{text}"'


def test_a_completed_turn_without_artifacts_has_no_answer():
    recording = Recording().sent("Why?").received(B, state="TASK_STATE_COMPLETED")
    assert [b.who for b in scene(recording.events).bubbles] == ["orchestrator"]


# What was remembered


def test_the_ledger_is_what_was_read_last():
    recording = Recording().ledger({A: [], B: [("ctx-41", 4)]}, unread=["replica-c"])
    recording.created(A, "memory", "announced, not read")
    memory_a, memory_b, shared, unread = scene(recording.events).ledger
    assert (memory_a.replica, memory_a.sessions) == (part(A), ())
    assert [(s.session_id, s.events) for s in memory_b.sessions] == [("ctx-41", 4)]
    assert (shared.store, shared.replica) == ("shared", None)
    assert (unread.replica, unread.read) == (part("replica-c"), False)


def test_a_lookup_that_found_its_session_goes_on_with_it():
    second = scene(recorded()).lookups[1]
    assert (second.turn, second.found, second.events) == (2, True, 4)
    assert second.asked_for == second.stored_as == "ctx-41"


def test_a_lookup_that_missed_shows_the_name_stored_instead():
    first, second = scene(recorded(FORGOT)).lookups
    assert (second.asked_for, second.stored_as) == ("ctx-41", "77ab21")
    assert (second.found, second.replica) == (False, part(A))
    assert first.stored_as == "9e1e0d"


def test_a_lookup_that_missed_has_no_name_before_the_session_is_made():
    recording = Recording().sent("Why?").looked_up(B, "memory")
    assert scene(recording.events).lookups[0].stored_as == ""


def test_a_turn_without_a_lookup_has_none():
    assert scene(Recording().sent("Why?").events).lookups == ()


def test_the_agent_sees_its_own_session_and_not_the_other():
    seen = scene(recorded(FORGOT)).seen
    assert (seen.turn, seen.replica, seen.call, seen.events) == (2, part(A), 1, 1)
    assert seen.lines == ("user: the compute line",)
    assert seen.elsewhere == ("user: why", "call", "result", "calls ask_user")


def test_nothing_is_elsewhere_when_all_is_in_view():
    seen = scene(recorded(Happened("shared", replicas=(B, A)))).seen
    assert seen.events == 7
    assert seen.elsewhere == ()


def test_no_model_was_called_yet():
    assert scene(Recording().sent("Why?").events).seen is None


# What is going on


def test_the_tenant_is_the_one_stamped_last():
    assert scene([]).tenant == ""
    assert scene(asked().events).tenant == "acme"


@pytest.mark.case(16)
def test_a_question_is_pending_until_it_is_answered():
    recording = asked()
    pending = scene(recording.events).pending
    assert (pending.text, pending.task_id, pending.context_id, pending.turn) == (
        QUESTION,
        "task-1",
        "ctx-41",
        1,
    )
    assert scene(recording.events).next_turn == 2
    recording.sent("The compute line.", "task-1")
    assert scene(recording.events).pending is None


def test_an_answer_that_failed_leaves_the_question_pending():
    recording = asked().sent("The compute line.", "task-1").failed()
    shown = scene(recording.events)
    assert shown.pending.task_id == "task-1"
    assert shown.next_turn == 2


def test_nothing_is_pending_before_the_first_message():
    assert scene([]).pending is None


def test_a_turn_is_waited_for_until_it_ends():
    recording = Recording().sent("Why?")
    waiting = scene(recording.events).waiting
    assert (waiting.turn, waiting.replica) == (1, None)
    assert waiting.since == recording.events[0].at
    recording.chosen(A).chosen(B)
    shown = scene(recording.events)
    assert shown.waiting.replica == part(B)
    assert shown.next_turn is None
    recording.ended(B, "TASK_STATE_INPUT_REQUIRED")
    assert scene(recording.events).waiting is None


def test_a_failure_is_shown_until_the_turn_is_sent_again():
    recording = Recording().sent("Why?").failed()
    shown = scene(recording.events)
    assert sentence(shown.failure.phrase) == "The billing agent could not be reached."
    assert (shown.failure.turn, shown.failure.error_id) == (1, "0123456789ab")
    assert (shown.waiting, shown.next_turn) == (None, 1)
    again = scene(recording.sent("Why?", turn=1).events)
    assert again.failure is None
    assert again.waiting.turn == 1


def test_what_each_turn_released_is_kept_apart():
    first, second = scene(recorded(Happened(noisy=True))).released
    assert [artifact.artifact_id for artifact in first.artifacts] == ["one-1", "one-2"]
    assert [artifact.artifact_id for artifact in second.artifacts] == [
        "two-1",
        "two-2",
        "two-3",
    ]
    assert (first.size, second.size) == (200, 400)
    assert second.intermediate == (REMARK,)


def test_an_event_of_a_run_does_not_change():
    event = recorded()[0]
    with pytest.raises(AttributeError):
        event.seq = 2
    assert replace(event, seq=2).seq == 2
