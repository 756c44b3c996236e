from __future__ import annotations

import pytest
from google.adk.events.event import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.sessions import Session
from google.genai import types

from billing_agent.stores.memory import MemoryService, by_tenant, by_user

ANN = {"app_name": "app", "user_id": "ann"}


def said(text, **fields):
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author="user", content=content, **fields)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("postgres", marks=pytest.mark.django_db(transaction=True)),
    ]
)
def memory(request):
    """The same cases hold for ADK's own service and ours."""
    if request.param == "memory":
        return InMemoryMemoryService()
    return MemoryService(request.getfixturevalue("pool"))


async def found(memory, query, where=ANN):
    response = await memory.search_memory(**where, query=query)
    return [entry.content.parts[0].text for entry in response.memories]


async def test_memories_are_found_by_their_words_best_first(memory):
    texts = ["Support went up", "the support rate", "Traffic", "rate of support hours"]
    await memory.add_events_to_memory(
        **ANN, events=[said(text) for text in texts], session_id="s"
    )
    assert await found(memory, "SUPPORT rate hours?") == [
        "rate of support hours",
        "the support rate",
        "Support went up",
    ]
    assert await found(memory, "port") == []
    assert await found(memory, "") == []


@pytest.mark.case(5)
async def test_words_of_every_script_are_found(memory):
    texts = ["Zürich zahlt", "私はPythonを使う", "請求書 😀 a\u2028b", "%_\\ x"]
    await memory.add_events_to_memory(**ANN, events=[said(text) for text in texts])
    assert await found(memory, "zu\u0308rich") == texts[:1]
    assert await found(memory, "python") == texts[1:2]
    assert await found(memory, "請求") == texts[2:3]
    assert await found(memory, "b") == texts[2:3]
    assert await found(memory, "%") == []


async def test_a_memory_keeps_the_whole_content_and_its_origin(memory):
    event = said("the rate", timestamp=1_700_000_000.0, id="e1")
    event.content.parts.append(types.Part(function_call=types.FunctionCall(name="f")))
    await memory.add_events_to_memory(**ANN, events=[event])
    (entry,) = (await memory.search_memory(**ANN, query="rate")).memories
    assert (entry.id, entry.author, entry.content) == ("e1", "user", event.content)
    assert entry.timestamp.startswith("2023-11-14T")


async def test_a_session_may_be_added_again_and_again(memory):
    session = Session(id="s", **ANN, events=[said("first rate"), Event(author="user")])
    await memory.add_session_to_memory(session)
    session.events.append(said("second rate"))
    await memory.add_session_to_memory(session)
    assert await found(memory, "rate") == ["first rate", "second rate"]


async def test_users_and_apps_do_not_share_memories(memory):
    await memory.add_events_to_memory(**ANN, events=[said("secret rate")])
    assert await found(memory, "rate", {**ANN, "user_id": "bob"}) == []
    assert await found(memory, "rate", {**ANN, "app_name": "other"}) == []


async def test_at_most_ten_memories_are_returned(memory):
    events = [said(f"rate {number}") for number in range(15)]
    await memory.add_events_to_memory(**ANN, events=events)
    assert await found(memory, "rate") == [f"rate {number}" for number in range(10)]


async def test_a_tenant_remembers_whichever_user_asks(pool):
    acme, globex = (MemoryService(pool, by_tenant(name)) for name in ("acme", "globex"))
    await acme.add_events_to_memory(**ANN, events=[said("the rate")])
    assert await found(acme, "rate", {**ANN, "user_id": "bob"}) == ["the rate"]
    assert await found(globex, "rate") == []
    assert await found(MemoryService(pool), "rate", {**ANN, "user_id": "acme"}) == []


async def test_callers_with_the_same_user_do_not_share_memories(pool):
    mine, theirs = (MemoryService(pool, by_user(name)) for name in ("c-1", "c-2"))
    await mine.add_events_to_memory(**ANN, events=[said("the rate")])
    assert await found(mine, "rate") == ["the rate"]
    assert await found(theirs, "rate") == []


def test_no_tenant_is_no_key():
    with pytest.raises(ValueError, match="tenant"):
        by_tenant("")
