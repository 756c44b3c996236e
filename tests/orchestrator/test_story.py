"""The story sent to a scripted peer and recorded in a real database."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

import psycopg
import pytest

from orchestrator import client, deployment, matrix, runs, story
from orchestrator.config import Configuration, Sessions, Toggle
from orchestrator.errors import StepFailed
from orchestrator.events import Kind
from orchestrator.fold import fold
from orchestrator.models import TurnState
from orchestrator.sentences import Phrase, sentence
from tests.orchestrator.peer import (
    Reply,
    artifact,
    serving,
    status,
    stream,
    submitted,
    told,
)

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = stream(
    submitted(), status("WORKING"), status("INPUT_REQUIRED", "Which line item?")
)
ANSWERS = stream(status("WORKING"), artifact("Compute rose."), status("COMPLETED"))
LEDGER = told(
    {
        "replica": "replica-b",
        "stores": [
            {
                "store": "memory",
                "sessions": [
                    {"user": "A2A_USER_ctx-41", "session_id": "ctx-41", "events": 4}
                ],
            }
        ],
    }
)


@asynccontextmanager
async def told_to(*replies):
    """Serve these answers to messages, one by one, and direct the client there."""
    async with serving() as peer:
        peer.replies["/a2a/"] = [*replies]
        peer.replies["/demo/ledger"] = LEDGER
        database = deployment.from_settings().database
        with deployment.using(peer.deployed(database=database)):
            try:
                yield peer
            finally:
                await client.close()
                await runs.close()


def kinds(events, turn=None):
    return [str(e.kind) for e in events if turn in {None, e.turn}]


async def recorded(run, count):
    """Return the run's events once there are so many."""
    async with asyncio.timeout(20):
        while len(events := await runs.read(run.id)) < count:
            continue
    return events


def messages(peer):
    return [r.json["params"]["message"] for r in peer.asked("/a2a/")]


async def test_a_turn_is_recorded_from_request_to_ledger():
    async with told_to(ASKS):
        run = await runs.create(Configuration())
        assert await story.send_turn(run)
        events = await runs.read(run.id)
        assert kinds(events) == [
            "message-sent",
            "event-received",
            "event-received",
            "event-received",
            "ledger-read",
            "turn-ended",
        ]
        assert {(event.turn, event.part) for event in events} == {(1, "orchestrator")}
        sent, *_, ledger, ended = events
        assert sent.data["text"] == story.TURNS[1]
        assert sent.data["request"]["body"]["method"] == "SendStreamingMessage"
        assert ledger.data["stores"][0]["replica"] == "replica-b"
        assert ended.data["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert (ended.data["replica"], ended.data["task_id"]) == (
            "replica-b",
            "task-1",
        )
        assert ended.data["duration_ms"] >= 0
        assert (await runs.get(run.id)).turn_state == TurnState.IDLE


async def test_no_token_is_stored():
    async with told_to(ASKS):
        run = await runs.create(Configuration())
        await story.send_turn(run)
        async with await psycopg.AsyncConnection.connect(
            deployment.current().database
        ) as connection:
            found = await connection.execute(
                "SELECT count(*) FROM orchestrator_runevent"
                " WHERE data::text LIKE '%%secret%%'"
            )
            assert await found.fetchone() == (0,)


async def test_the_run_s_own_subject_is_asked_a_token_for():
    async with told_to(ASKS) as peer:
        run = await runs.create(Configuration())
        await story.send_turn(run)
        [request] = peer.asked("/token")
        assert f"subject=orchestrator%2F{run.id}" in request.body.decode()


async def test_turn_2_answers_the_question_of_turn_1():
    async with told_to(ASKS, ANSWERS) as peer:
        run = await story.play(Configuration())
        first, second = messages(peer)
        assert "taskId" not in first
        assert (second["taskId"], second["contextId"]) == ("task-1", "ctx-41")
        assert second["parts"] == [{"text": "The compute line."}]
        assert first["messageId"] != second["messageId"]
        assert (run.turns_sent, run.turn_state) == (2, TurnState.IDLE)
        shown = fold(await runs.read(run.id), run.configuration)
        assert shown.bubbles[-1].text == "Compute rose."
        assert shown.next_turn == 3


async def test_a_turn_after_an_answer_is_a_new_task():
    async with told_to(ASKS, ANSWERS, ANSWERS) as peer:
        run = await story.play(Configuration())
        assert await story.send_turn(run)
        assert "taskId" not in messages(peer)[2]
        assert messages(peer)[2]["parts"] == [{"text": story.TURNS[3]}]


async def test_after_the_last_turn_nothing_is_sent():
    async with told_to(ASKS, ANSWERS, ANSWERS) as peer:
        run = await story.play(Configuration())
        await story.send_turn(run)
        assert not await story.send_turn(run)
        assert not await story.send_turn(run, 4)
        assert len(messages(peer)) == 3


@pytest.mark.case(18)
async def test_a_double_click_sends_once():
    async with told_to(ASKS) as peer:
        run = await runs.create(Configuration())
        clicks = await asyncio.gather(*(story.send_turn(run, 1) for _ in range(5)))
        assert sorted(clicks) == [False] * 4 + [True]
        assert len(messages(peer)) == 1
        assert not await story.send_turn(run, 1)


@pytest.mark.case(15)
async def test_a_slow_agent_is_waited_for_and_everybody_else_sees_it():
    rest = asyncio.Event()
    async with told_to(stream(submitted(), rest, status("COMPLETED"))):
        run = await runs.create(Configuration())
        sending = asyncio.create_task(story.send_turn(run))
        shown = fold(await recorded(run, 2), run.configuration)
        assert shown.waiting.turn == 1
        assert shown.next_turn is None
        rest.set()
        assert await sending


FAILURES = {
    "refused": (told({"error": {"code": -32602}}, status=400), "failed.refused"),
    "no replica": (told({}, status=503), "failed.unreachable"),
    "cut off": (stream(submitted(), whole=False), "failed.broken-off"),
    "ended early": (stream(submitted(), status("WORKING")), "failed.broken-off"),
    "nothing": (stream(), "failed.broken-off"),
    "failed": (
        stream(status("FAILED", "Agent execution failed. (error_id: 00)")),
        "failed.agent",
    ),
    "rejected": (stream(status("REJECTED", "conversation busy")), "failed.agent"),
    "not storable": (stream(status("WORKING", "a\x00b")), "failed.unexpected"),
}


@pytest.mark.parametrize(("reply", "reason"), FAILURES.values(), ids=FAILURES)
async def test_a_turn_that_fails_is_recorded_with_a_safe_sentence(
    reply, reason, caplog
):
    async with told_to(reply):
        run = await runs.create(Configuration())
        with pytest.raises(StepFailed) as caught:
            await story.send_turn(run)
        last = (await runs.read(run.id))[-1]
    assert last.kind is Kind.STEP_FAILED
    assert last.data == {
        "reason": reason,
        "sentence": sentence(Phrase(reason)),
        "error_id": caught.value.error_id,
    }
    assert len(caught.value.error_id) == 12
    [record] = [r for r in caplog.records if caught.value.error_id in r.getMessage()]
    assert record.levelno == logging.ERROR
    assert record.exc_info
    assert str(caught.value) == (
        f"{sentence(Phrase(reason))} (error id {caught.value.error_id})"
    )


async def test_no_token_no_turn():
    async with told_to(ASKS) as peer:
        peer.replies["/token"] = told({"error": "invalid_client"}, status=401)
        run = await runs.create(Configuration())
        with pytest.raises(StepFailed) as caught:
            await story.send_turn(run)
        assert caught.value.reason == "failed.token"
        assert peer.asked("/a2a/") == []
        assert (await runs.get(run.id)).turn_state == TurnState.FAILED


async def test_a_turn_that_failed_may_be_sent_again_and_counts_once():
    async with told_to(told({}, status=503), ASKS) as peer:
        run = await runs.create(Configuration())
        with pytest.raises(StepFailed):
            await story.send_turn(run)
        assert await story.send_turn(run)
        first, second = messages(peer)
        # Its fate unknown, the same send goes out again under the same id.
        assert first == second
        assert (await runs.get(run.id)).turns_sent == 1
        shown = fold(await runs.read(run.id), run.configuration)
        assert (shown.failure, shown.next_turn) == (None, 2)


async def test_after_a_failed_task_a_retry_is_a_new_message_to_a_new_task():
    failed = stream(status("FAILED", "Agent execution failed."))
    async with told_to(ASKS, failed, ANSWERS) as peer:
        run = await runs.create(Configuration())
        await story.send_turn(run)
        with pytest.raises(StepFailed):
            await story.send_turn(run)
        assert await story.send_turn(run)
        _, first, second = messages(peer)
        assert first["taskId"] == "task-1"
        assert "taskId" not in second
        assert first["messageId"] != second["messageId"]


async def test_a_lost_answer_is_asked_for_again_with_its_task():
    async with told_to(ASKS, stream(whole=False), ANSWERS) as peer:
        run = await runs.create(Configuration())
        await story.send_turn(run)
        with pytest.raises(StepFailed):
            await story.send_turn(run)
        await story.send_turn(run)
        assert messages(peer)[1] == messages(peer)[2]


async def test_a_turn_that_is_stopped_may_be_sent_again(caplog):
    never = asyncio.Event()
    async with told_to(stream(submitted(), never), ASKS):
        run = await runs.create(Configuration())
        sending = asyncio.create_task(story.send_turn(run))
        await recorded(run, 2)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        never.set()
        last = (await runs.read(run.id))[-1]
        assert last.data["reason"] == "failed.stopped"
        [record] = [r for r in caplog.records if "was stopped" in r.getMessage()]
        assert last.data["error_id"] in record.getMessage()
        assert not record.exc_info
        assert await story.send_turn(run)


async def test_a_failure_that_cannot_be_recorded_is_still_told(caplog, monkeypatch):
    async with told_to(stream()):
        run = await runs.create(Configuration())
        append = runs.append

        async def refusing(run_id, part, kind, data):
            if kind is Kind.STEP_FAILED:
                raise psycopg.OperationalError("gone")
            return await append(run_id, part, kind, data)

        monkeypatch.setattr(runs, "append", refusing)
        with pytest.raises(StepFailed) as caught:
            await story.send_turn(run)
    assert f"not recorded [error_id={caught.value.error_id}]" in caplog.text


async def test_a_replica_that_does_not_show_its_ledger_does_not_stop_the_story():
    async with told_to(ASKS) as peer:
        peer.replies["/demo/ledger"] = Reply(status=503)
        run = await runs.create(Configuration())
        assert await story.send_turn(run)
        ledger = (await runs.read(run.id))[-2]
        assert ledger.data == {"stores": [], "unread": ["replica-b"]}


# The matrix


async def test_the_matrix_holds_every_cell_in_order_and_says_what_failed():
    def by_switches(request):
        params = request.json["params"]
        [switches] = params["metadata"].values()
        if switches["sessions"] == "shared":
            return told({}, status=503)
        return ANSWERS if "taskId" in params["message"] else ASKS

    chosen = [Configuration(), Configuration(sessions=Sessions.SHARED)]
    async with told_to(by_switches):
        finished = []
        cells = await matrix.play_matrix(finished.append, chosen)
    assert [cell.configuration for cell in cells] == chosen
    assert sorted(map(id, finished)) == sorted(map(id, cells))
    found = matrix.as_json(cells)
    # The peer announces no model call, so even a right answer is no proof.
    assert found["as_predicted"] == 0
    played, failed = found["cells"]
    assert (played["outcome"], played["predicted"]) == ("answers", "answers")
    assert failed["outcome"] is None
    assert failed["config"]["sessions"] == "shared"
    assert failed["sentence"] == "The billing agent could not be reached."
    assert len(failed["error_id"]) == 12


async def test_without_a_store_of_runs_there_is_no_matrix(monkeypatch):
    async def refusing(configuration):
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(runs, "create", refusing)
    with pytest.raises(psycopg.OperationalError, match="gone"):
        await matrix.play_matrix()


def test_a_cell_not_run_yet_is_neither_outcome():
    cell = matrix.Cell(Configuration(continuity=Toggle.OFF))
    assert not cell.as_predicted
    assert cell.as_dict() == {
        "config": Configuration(continuity=Toggle.OFF).as_dict(),
        "outcome": None,
    }
