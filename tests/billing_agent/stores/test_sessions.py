"""What ADK's own session service does, ours does; what it leaves open, ours shuts."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from billing_agent.stores.history import History, Prefix, parse
from billing_agent.stores.sessions import SessionService

ANN = {"app_name": "app", "user_id": "ann"}
BOB = {"app_name": "app", "user_id": "bob"}
CTX = {**ANN, "session_id": "ctx-41"}

AWKWARD = 'Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne "\\ \t\u007f'


def said(text, state=None, at=None, **fields):
    event = Event(
        author="user",
        invocation_id="run",
        content=types.Content(role="user", parts=[types.Part(text=text)]),
        actions=EventActions(state_delta=state or {}),
        **fields,
    )
    if at is not None:
        event.timestamp = at
    return event


def texts(session):
    return [event.content.parts[0].text for event in session.events]


@pytest.fixture
async def store(pool):
    return SessionService(pool)


# What every session service does


async def test_a_session_comes_back_as_it_was_left(session_store):
    session = await session_store.create_session(**CTX, state={"a": 1})
    events = [said(str(number), state={"n": number}) for number in range(3)]
    for event in events:
        assert await session_store.append_event(session, event) is event

    found = await session_store.get_session(**CTX)

    assert found == session
    assert found.events == events
    assert found.state == {"a": 1, "n": 2}
    assert found.last_update_time == events[-1].timestamp
    assert (found.id, found.user_id, found.app_name) == ("ctx-41", "ann", "app")


async def test_a_session_that_never_was_is_none(session_store):
    assert await session_store.get_session(**CTX) is None
    await session_store.create_session(**ANN, session_id="other")
    assert await session_store.get_session(**CTX) is None


async def test_an_id_is_made_when_none_is_given(session_store):
    made = await session_store.create_session(**ANN)
    blank = await session_store.create_session(**ANN, session_id="  ")
    assert len({made.id, blank.id, ""}) == 3
    assert await session_store.get_session(**ANN, session_id=made.id)


async def test_spaces_around_an_id_do_not_count(session_store):
    created = await session_store.create_session(**ANN, session_id=" ctx-41\n")
    assert created.id == "ctx-41"
    assert await session_store.get_session(**ANN, session_id="\tctx-41 ")
    await session_store.delete_session(**ANN, session_id=" ctx-41 ")
    assert await session_store.get_session(**CTX) is None


async def test_creating_twice_is_refused_and_changes_nothing(session_store):
    await session_store.create_session(**CTX, state={"a": 1, "user:u": 1, "app:x": 1})
    with pytest.raises(AlreadyExistsError):
        await session_store.create_session(
            **CTX, state={"a": 2, "user:u": 2, "app:x": 2}
        )
    found = await session_store.get_session(**CTX)
    assert found.state == {"a": 1, "user:u": 1, "app:x": 1}


@pytest.mark.statement(29)
async def test_of_fifty_first_creations_one_wins_and_all_can_get(session_store):
    async def first():
        try:
            return await session_store.create_session(**CTX)
        except AlreadyExistsError:
            assert await session_store.get_session(**CTX)
            return None

    made = await asyncio.gather(*(first() for _ in range(50)))

    assert len([session for session in made if session]) == 1


async def test_state_reaches_as_far_as_its_prefix(session_store):
    session = await session_store.create_session(**CTX)
    state = {"own": 1, "user:lang": "de", "app:rate": 2.5, "temp:x": 0}
    await session_store.append_event(session, said("hi", state=state))

    same_user = await session_store.create_session(**ANN, session_id="second")
    other_user = await session_store.create_session(**BOB, session_id="third")

    assert (await session_store.get_session(**CTX)).state == {
        "own": 1,
        "user:lang": "de",
        "app:rate": 2.5,
    }
    assert same_user.state == {"user:lang": "de", "app:rate": 2.5}
    assert other_user.state == {"app:rate": 2.5}
    assert await session_store.get_user_state(**ANN) == {"lang": "de"}
    assert await session_store.get_user_state(**BOB) == {}


async def test_temporary_state_lives_in_the_run_only(session_store):
    session = await session_store.create_session(**CTX, state={"temp:start": 1})
    event = said("hi", state={"temp:x": 1, "kept": 2})
    await session_store.append_event(session, event)

    assert session.state == {"temp:x": 1, "kept": 2}
    assert event.actions.state_delta == {"kept": 2}
    found = await session_store.get_session(**CTX)
    assert found.state == {"kept": 2}
    assert found.events[0].actions.state_delta == {"kept": 2}


async def test_later_state_replaces_whole_values(session_store):
    session = await session_store.create_session(**CTX, state={"a": {"b": 1, "c": 2}})
    await session_store.append_event(session, said("1", state={"a": {"b": 3}}))
    await session_store.append_event(session, said("2", state={"gone": None}))
    found = await session_store.get_session(**CTX)
    assert found.state == {"a": {"b": 3}, "gone": None}


async def test_a_partial_event_is_not_kept(session_store):
    session = await session_store.create_session(**CTX)
    partial = said("hal", state={"a": 1}, partial=True)
    assert await session_store.append_event(session, partial) is partial
    assert (session.events, session.state) == ([], {})
    assert (await session_store.get_session(**CTX)).events == []


async def test_an_event_delivered_again_counts_once(session_store):
    session = await session_store.create_session(**CTX)
    event = said("once", state={"n": 1})
    await session_store.append_event(session, event)
    await session_store.append_event(session, event)
    other = await session_store.get_session(**CTX)
    await session_store.append_event(other, event.model_copy(deep=True))
    await session_store.append_event(other, said("more"))
    assert texts(await session_store.get_session(**CTX)) == ["once", "more"]


async def test_different_events_may_share_an_id(session_store):
    session = await session_store.create_session(**CTX)
    await session_store.append_event(session, said("one", id="same"))
    await session_store.append_event(session, said("two", id="same"))
    assert texts(await session_store.get_session(**CTX)) == ["one", "two"]


async def test_appending_to_a_deleted_session_is_refused(session_store):
    session = await session_store.create_session(**CTX)
    await session_store.delete_session(**CTX)
    with pytest.raises(SessionNotFoundError):
        await session_store.append_event(session, said("too late"))


async def test_deleting_takes_the_events_and_leaves_the_rest(session_store):
    session = await session_store.create_session(**CTX)
    await session_store.create_session(**ANN, session_id="stays")
    await session_store.append_event(session, said("1", state={"user:lang": "de"}))

    await session_store.delete_session(**CTX)
    await session_store.delete_session(**CTX)

    assert await session_store.get_session(**CTX) is None
    assert await session_store.get_user_state(**ANN) == {"lang": "de"}
    again = await session_store.create_session(**CTX)
    assert (again.events, again.state) == ([], {"user:lang": "de"})
    listed = await session_store.list_sessions(**ANN)
    assert {found.id for found in listed.sessions} == {"stays", "ctx-41"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"num_recent_events": 0}, ""),
        ({"num_recent_events": 2}, "de"),
        ({"num_recent_events": 99}, "abcde"),
        ({"after_timestamp": 3}, "cde"),
        ({"after_timestamp": 2.5}, "cde"),
        ({"after_timestamp": 9}, ""),
        ({"after_timestamp": 0}, "abcde"),
        ({"num_recent_events": 2, "after_timestamp": 2}, "de"),
        ({"num_recent_events": 4, "after_timestamp": 4}, "de"),
        ({}, "abcde"),
    ],
)
async def test_a_part_of_the_events_can_be_asked_for(session_store, config, expected):
    session = await session_store.create_session(**CTX, state={"user:lang": "de"})
    for at, text in enumerate("abcde", 1):
        await session_store.append_event(session, said(text, at=at))

    found = await session_store.get_session(**CTX, config=GetSessionConfig(**config))

    assert "".join(texts(found)) == expected
    assert found.state == {"user:lang": "de"}


async def test_an_old_timestamp_among_newer_ones_bounds_the_part(session_store):
    session = await session_store.create_session(**CTX)
    for at, text in [(5, "a"), (1, "b"), (6, "c"), (7, "d")]:
        await session_store.append_event(session, said(text, at=at))
    config = GetSessionConfig(after_timestamp=5)
    found = await session_store.get_session(**CTX, config=config)
    assert texts(found) == ["c", "d"]


async def test_sessions_are_listed_least_recently_used_first(session_store):
    for where, at in [("b", 30), ("a", 10), ("Z", 10), ("ä", 10)]:
        session = await session_store.create_session(**ANN, session_id=where)
        await session_store.append_event(session, said("x", at=at, state={"at": at}))
    other = await session_store.create_session(**BOB, session_id="bobs")
    await session_store.append_event(other, said("x", at=20, state={"user:u": 1}))

    of_ann = (await session_store.list_sessions(**ANN)).sessions
    of_all = (await session_store.list_sessions(app_name="app")).sessions

    assert [session.id for session in of_ann] == ["Z", "a", "ä", "b"]
    assert [session.id for session in of_all] == ["Z", "a", "ä", "bobs", "b"]
    assert [session.user_id for session in of_all] == ["ann"] * 3 + ["bob", "ann"]
    assert all(session.events == [] for session in of_all)
    assert of_all[3].state == {"user:u": 1}
    assert of_ann[0].state == {"at": 10}
    assert (await session_store.list_sessions(app_name="none")).sessions == []


async def test_apps_do_not_see_each_other(session_store):
    await session_store.create_session(**CTX, state={"user:u": 1, "app:a": 1})
    elsewhere = {**CTX, "app_name": "other"}
    assert await session_store.get_session(**elsewhere) is None
    assert (await session_store.create_session(**elsewhere)).state == {}


async def test_nothing_returned_is_shared_with_the_store(session_store):
    session = await session_store.create_session(**CTX, state={"list": [1]})
    await session_store.append_event(session, said("original", state={"user:u": [1]}))
    for _ in range(2):
        found = await session_store.get_session(**CTX)
        assert texts(found) == ["original"]
        assert found.state == {"list": [1], "user:u": [1]}
        found.events[0].content.parts[0].text = "corrupted"
        found.events.append(said("added"))
        found.state["list"].append(2)
        found.state["user:u"].append(2)
        (await session_store.get_user_state(**ANN))["u"].append(3)


@pytest.mark.case(5)
async def test_text_is_kept_as_sent(session_store):
    session = await session_store.create_session(**CTX, state={AWKWARD: AWKWARD})
    await session_store.append_event(session, said(AWKWARD, state={"x": [AWKWARD]}))
    found = await session_store.get_session(**CTX)
    assert texts(found) == [AWKWARD]
    assert found.state == {AWKWARD: AWKWARD, "x": [AWKWARD]}


async def test_every_kind_of_part_is_kept(session_store):
    session = await session_store.create_session(**CTX)
    call = types.FunctionCall(id="c1", name="get", args={"number": 8812, "x": None})
    answer = types.FunctionResponse(id="c1", name="get", response={"rate": 1.0})
    event = said("text", output={"k": None}, long_running_tool_ids={"b", "a"})
    event.content.parts += [
        types.Part(function_call=call),
        types.Part(function_response=answer),
        types.Part(text="hm", thought=True, thought_signature=b"\x00\xff"),
        types.Part(inline_data=types.Blob(mime_type="x/y", data=b"\x00\xfe")),
    ]
    await session_store.append_event(session, event)
    found = (await session_store.get_session(**CTX)).events[0]
    assert found == event
    assert type(found.content.parts[1].function_call.args["number"]) is int


async def test_branches_that_share_one_session_object_all_get_in(session_store):
    session = await session_store.create_session(**CTX)
    events = [said(str(number), state={str(number): 1}) for number in range(30)]
    await asyncio.gather(*(session_store.append_event(session, e) for e in events))
    found = await session_store.get_session(**CTX)
    assert found.events == session.events
    assert sorted(texts(found)) == sorted(texts(session)) == sorted(map(str, range(30)))
    assert len(found.state) == 30


# What ours adds


async def test_a_stale_writer_is_refused_and_changes_nothing(store):
    await store.create_session(**CTX)
    one, two = await store.get_session(**CTX), await store.get_session(**CTX)
    await store.append_event(one, said("first"))

    with pytest.raises(StaleSessionError):
        await store.append_event(two, said("second", state={"user:u": 1, "app:a": 1}))

    assert two.events == []
    found = await store.get_session(**CTX)
    assert (texts(found), found.state) == (["first"], {})
    await store.append_event(found, said("second"))
    await store.append_event(one, one.events[0])


@pytest.mark.statement(29)
async def test_of_fifty_writers_at_one_revision_exactly_one_appends(pool):
    services = [SessionService(pool) for _ in range(50)]
    await services[0].create_session(**CTX)
    copies = [await service.get_session(**CTX) for service in services]

    outcomes = await asyncio.gather(
        *(
            service.append_event(copy, said(str(number)))
            for number, (service, copy) in enumerate(zip(services, copies, strict=True))
        ),
        return_exceptions=True,
    )

    refused = [one for one in outcomes if isinstance(one, StaleSessionError)]
    assert len(refused) == 49
    assert len((await services[0].get_session(**CTX)).events) == 1


async def test_a_session_created_anew_is_not_the_old_one(store):
    old = await store.create_session(**CTX)
    await store.delete_session(**CTX)
    await store.create_session(**CTX)
    with pytest.raises(StaleSessionError):
        await store.append_event(old, said("from the past"))


async def test_an_old_reader_of_a_session_created_anew_sees_the_new_events(pool):
    here, there = SessionService(pool), SessionService(pool)
    for text in ("old", "new"):
        session = await there.create_session(**CTX)
        await there.append_event(session, said(text))
        assert texts(await here.get_session(**CTX)) == [text]
        await there.delete_session(**CTX)
    assert await here.get_session(**CTX) is None


async def test_a_session_restored_from_its_json_can_go_on(store):
    session = await store.create_session(**CTX)
    await store.append_event(session, said("1"))
    restored = Session.model_validate_json(session.model_dump_json())
    await store.append_event(restored, said("2"))
    assert texts(await store.get_session(**CTX)) == ["1", "2"]
    with pytest.raises(StaleSessionError):
        await store.append_event(
            Session(id="ctx-41", app_name="app", user_id="ann"), said("3")
        )


@pytest.mark.statement(28)
async def test_another_replica_reads_every_event_at_once(pool):
    here, there = SessionService(pool), SessionService(pool)
    session = await here.create_session(**CTX)
    for turn in range(5):
        session = await (here, there)[turn % 2].get_session(**CTX)
        for number in range(3):
            await (here, there)[turn % 2].append_event(
                session, said(f"{turn}.{number}")
            )
    expected = [f"{turn}.{number}" for turn in range(5) for number in range(3)]
    assert texts(await here.get_session(**CTX)) == expected
    assert texts(await there.get_session(**CTX)) == expected


async def test_deleting_while_others_append_leaves_no_event_behind(pool, eventually):
    service = SessionService(pool)
    session = await service.create_session(**CTX)

    async def append():
        for number in range(100):
            await service.append_event(session, said(str(number)))

    appending = asyncio.create_task(append())
    await eventually(lambda: len(session.events) > 3)
    await service.delete_session(**CTX)
    with pytest.raises(SessionNotFoundError):
        await appending

    async with pool.connection() as connection:
        cursor = await connection.execute("SELECT count(*) FROM billing_agent_adkevent")
        assert await cursor.fetchone() == (0,)


async def test_state_of_many_users_at_once_loses_nothing(pool):
    service = SessionService(pool)

    async def work(number):
        session = await service.create_session(**ANN, session_id=str(number))
        delta = {f"app:{number}": number, f"user:{number}": number}
        await service.append_event(session, said("x", state=delta))

    await asyncio.gather(*(work(number) for number in range(40)))

    session = await service.create_session(**CTX)
    assert len(session.state) == 80


async def test_the_ledger_counts_what_the_tables_hold(store):
    for name, events in [("b", 2), ("a", 0)]:
        session = await store.create_session(**ANN, session_id=name)
        for number in range(events):
            await store.append_event(session, said(str(number)))
    assert await store.held("app", "ann") == [("b", 2), ("a", 0)]
    assert await store.held("app", "bob") == []


# How much is remembered


async def test_a_known_session_is_not_parsed_again(store, monkeypatch):
    parsed = []

    def counted(bodies):
        events = parse(bodies)
        parsed.append(len(events))
        return events

    monkeypatch.setattr("billing_agent.stores.sessions.parse", counted)
    session = await store.create_session(**CTX)
    for text in "ab":
        await store.append_event(session, said(text))
    for _ in range(3):
        assert await store.get_session(**CTX) == session
    await store.append_event(session, said("c"))
    assert await store.get_session(**CTX) == session
    assert parsed == [2, 0, 0, 1]


def test_the_least_recently_read_sessions_make_room():
    prefix = Prefix().extended(1, 1, [said("x")])
    history = History(limit=3 * prefix.size)
    for name in "abcde":
        history.keep(("app", "ann", name), prefix)
        history.get(("app", "ann", "a"))
    kept = [name for name in "abcde" if history.get(("app", "ann", name)).revision]
    assert kept == ["a", "d", "e"]


def test_a_session_larger_than_the_limit_is_not_kept():
    history = History(limit=10)
    history.keep(
        ("a", "b", "c"), history.get(("a", "b", "c")).extended(1, 1, [said("")])
    )
    assert history.get(("a", "b", "c")).row == 0
