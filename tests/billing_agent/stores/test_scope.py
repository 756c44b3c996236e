from __future__ import annotations

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import InMemorySessionService

from billing_agent.models.sessions import SEPARATOR
from billing_agent.stores.scope import ScopedSessionService
from billing_agent.stores.sessions import SessionService

CTX = {"app_name": "app", "user_id": "A2A_USER_ctx-41", "session_id": "ctx-41"}
USER = {"app_name": "app", "user_id": "A2A_USER_ctx-41"}


@pytest.fixture(
    params=[
        "memory",
        pytest.param("postgres", marks=pytest.mark.django_db(transaction=True)),
    ]
)
def inner(request):
    if request.param == "memory":
        return InMemorySessionService()
    return SessionService(request.getfixturevalue("pool"))


@pytest.fixture
def mine(inner):
    return ScopedSessionService(inner, "client-1")


@pytest.fixture
def theirs(inner):
    return ScopedSessionService(inner, "client-2")


@pytest.mark.statement(27)
async def test_knowing_a_context_id_leads_into_no_conversation(mine, theirs):
    await mine.create_session(**CTX, state={"user:lang": "de"})

    assert await theirs.get_session(**CTX) is None
    assert await theirs.get_user_state(**USER) == {}
    await theirs.delete_session(**CTX)
    own = await theirs.create_session(**CTX)

    assert own.state == {}
    assert (await mine.get_session(**CTX)).state == {"user:lang": "de"}


@pytest.mark.statement(27)
async def test_inside_the_scope_the_user_is_the_plain_one(inner, mine):
    created = await mine.create_session(**CTX)
    found = await mine.get_session(**CTX)
    listed = (await mine.list_sessions(**USER)).sessions[0]
    await mine.append_event(found, Event(author="user"))

    users = {session.user_id for session in (created, found, listed)}
    assert users == {"A2A_USER_ctx-41"}
    stored = (await inner.list_sessions(app_name="app")).sessions
    assert [session.user_id for session in stored] == [
        f"client-1{SEPARATOR}A2A_USER_ctx-41"
    ]


async def test_state_of_the_app_is_shared_by_all_callers(mine, theirs):
    session = await mine.create_session(**CTX)
    event = Event(author="user", actions=EventActions(state_delta={"app:rate": 2}))
    await mine.append_event(session, event)
    assert (await theirs.create_session(**CTX)).state == {"app:rate": 2}


async def test_listing_without_a_user_shows_this_subject_only(inner, mine, theirs):
    await inner.create_session(**CTX)
    await ScopedSessionService(inner, "client-11").create_session(**CTX)
    await theirs.create_session(**CTX)
    await mine.create_session(**CTX)
    await mine.create_session(app_name="app", user_id="\U0001f600", session_id="x")
    listed = await mine.list_sessions(app_name="app")
    assert [(found.user_id, found.id) for found in listed.sessions] == [
        ("A2A_USER_ctx-41", "ctx-41"),
        ("\U0001f600", "x"),
    ]


async def test_the_ledger_counts_within_the_scope(mine, theirs):
    session = await mine.create_session(**CTX)
    await mine.append_event(session, Event(author="user"))
    await mine.append_event(session, Event(author="agent"))
    await theirs.create_session(**CTX)
    assert await mine.held("app", CTX["user_id"]) == [("ctx-41", 2)]
    assert await theirs.held("app", CTX["user_id"]) == [("ctx-41", 0)]
    assert await mine.held("app", "nobody") == []


@pytest.mark.parametrize("subject", ["", f"a{SEPARATOR}b"])
def test_a_subject_that_could_pass_for_another_is_refused(subject):
    with pytest.raises(ValueError, match="subject"):
        ScopedSessionService(InMemorySessionService(), subject)


async def test_a_session_handed_over_is_given_once_and_then_read_again():
    inner = InMemorySessionService()
    scoped = ScopedSessionService(inner, "client-1")
    names = {"app_name": "app", "user_id": "user", "session_id": "s1"}
    session = await scoped.create_session(**names)

    scoped.hand_over(session)

    assert await scoped.get_session(**names) is session
    assert await scoped.get_session(**names) is not session


async def test_another_session_is_not_answered_with_the_one_handed_over():
    scoped = ScopedSessionService(InMemorySessionService(), "client-1")
    session = await scoped.create_session(
        app_name="app", user_id="user", session_id="s1"
    )

    scoped.hand_over(session)

    other = await scoped.get_session(app_name="app", user_id="user", session_id="s2")
    assert other is None


@pytest.mark.statement(24)
async def test_text_of_an_exception_is_not_kept(mine):
    session = await mine.create_session(**CTX)
    broke = Event(author="billing", error_code="ValueError", error_message="pw=1234")

    await mine.append_event(session, broke)

    kept = (await mine.get_session(**CTX)).events[0]
    assert (kept.id, kept.error_code, kept.error_message) == (
        broke.id,
        "ValueError",
        None,
    )
    assert broke.error_message == "pw=1234"  # for the log
    assert "1234" not in str(session.events)
