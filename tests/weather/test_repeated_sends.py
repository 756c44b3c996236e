"""A send that met trouble before its task was stored, sent again."""

from __future__ import annotations

import asyncio
import re
import secrets

import pytest

from tests.peer import Refused, state
from tests.weather.locks import TASKS, cut_off, locked, waiting

INTERNAL = r"^Internal error\. \(error_id: [0-9a-f]{12}\)$"


@pytest.fixture
async def replicas(make_peer):
    subject = f"again-{secrets.token_hex(4)}"
    return await make_peer("replica-a", subject), await make_peer("replica-b", subject)


def a_send():
    return {"context_id": f"ctx-{secrets.token_hex(4)}", "message_id": "m-1"}


@pytest.mark.processes
@pytest.mark.case(19)
@pytest.mark.statement(40)
@pytest.mark.parametrize("method", ["send", "stream"])
async def test_a_send_whose_task_could_not_be_stored_runs_when_sent_again(
    demo, replicas, method
):
    a, b = replicas
    same = a_send()
    async with locked(demo, TASKS, "SHARE"):
        first = asyncio.ensure_future(_send(b, method, same))
        await cut_off(demo, await waiting(demo, TASKS))
        with pytest.raises(Refused) as refused:
            await first
    assert refused.value.code == -32603
    assert re.match(INTERNAL, refused.value.message)

    again = await asyncio.gather(
        *(peer.send("list my invoices", **same) for peer in (a, b))
    )

    assert {state(task) for task in again} == {"COMPLETED"}
    assert again[0]["id"] == again[1]["id"]
    tasks = await a.rpc("ListTasks", {"contextId": same["context_id"]})
    assert len(tasks["tasks"]) == 1


@pytest.mark.processes
@pytest.mark.case(19)
@pytest.mark.statement(40)
async def test_an_answer_that_could_not_be_stored_runs_when_sent_again(demo, replicas):
    a, b = replicas
    asked = await b.send("Why was invoice 8812 higher than last month?")
    same = {"task_id": asked["id"], "message_id": "m-2"}
    async with locked(demo, TASKS):
        first = asyncio.ensure_future(b.send("The compute line.", **same))
        await cut_off(demo, await waiting(demo, TASKS))
        with pytest.raises(Refused) as refused:
            await first
    assert refused.value.code == -32603

    assert state(await a.send("The compute line.", **same)) == "COMPLETED"


async def _send(peer, method, options):
    if method == "send":
        return await peer.send("list my invoices", **options)
    async with peer.stream("list my invoices", **options) as events:
        return [event async for event in events]
