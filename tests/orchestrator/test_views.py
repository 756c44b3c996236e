"""The pages over HTTP, on a real PostgreSQL, with recorded runs."""

from __future__ import annotations

import asyncio
import re

import pytest
from django.test import AsyncClient

from orchestrator import database, health, runs, snapshots, story, visitors
from orchestrator.config import Configuration, Output, Sessions, Toggle
from orchestrator.page import STEP_OF_TURN
from tests.orchestrator.recordings import Happened, Recording, first_turn, recorded
from tests.orchestrator.stored import OWNER, record, store

pytestmark = pytest.mark.django_db(transaction=True)

WHOLE = recorded()
ASKED = first_turn(Recording(), Happened()).events
FORGOT = Happened(affinity=False, replicas=("replica-b", "replica-a"), found=False)


@pytest.fixture(autouse=True)
async def closed_afterwards():
    yield
    await health.aclose()
    await runs.close()


@pytest.fixture(autouse=True)
def nobody_answers(settings):
    settings.REPLICAS = {"replica-a": "http://127.0.0.1:9"}
    settings.PUBLIC_URL = "http://127.0.0.1:9"


class Sent:
    """Turns that were asked for and claimed; none of them ever ends."""

    def __init__(self):
        self.turns = []
        self._news = asyncio.Event()

    async def send_turn(self, run, turn):
        if await runs.claim_turn(run.id, turn):
            self.turns.append((run.id, turn))
            self._news.set()
            await asyncio.Event().wait()
        return False

    async def first(self):
        await asyncio.wait_for(self._news.wait(), 5)
        return self.turns


@pytest.fixture
def sent(monkeypatch):
    """What was sent, instead of it being sent."""
    recorder = Sent()
    monkeypatch.setattr(story, "send_turn", recorder.send_turn)
    return recorder


def owner(enforce_csrf_checks=False):
    client = AsyncClient(enforce_csrf_checks=enforce_csrf_checks)
    client.cookies[visitors.COOKIE] = OWNER
    return client


async def page(run, place, client=None, **headers):
    address = f"/runs/{run.id}/walk/{place}"
    response = await (client or owner()).get(address, headers=headers)
    return response, response.content.decode()


async def run_count():
    [(count,)] = await database.execute("SELECT count(*) FROM orchestrator_run", [])
    return count


def visible(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def element(html, id):
    match = re.search(rf'<[^>]*\bid="{id}"[^>]*>', html)
    return match[0] if match else ""


def part(html, id):
    return html[html.index(f'id="{id}"') :]


# reading


async def test_the_start_page_starts_the_story_and_lists_runs():
    run = await store(WHOLE)
    response = await owner().get("/")
    html = response.content.decode()
    assert response.status_code == 200
    assert "Send the question" in html
    assert f'href="/runs/{run.id}/"' in html
    assert "answers" in html


async def test_the_start_page_has_no_runs_at_first():
    response = await owner().get("/")
    assert "No runs yet" in response.content.decode()


async def test_a_run_leads_to_its_newest_step():
    run = await store(ASKED)
    response = await owner().get(f"/runs/{run.id}/")
    assert response.headers["Location"] == f"/runs/{run.id}/walk/3/"


async def test_every_part_is_on_a_page_once():
    from orchestrator.parts import NAMES

    _, html = await page(await store(WHOLE), "4/")
    for name in NAMES:
        assert html.count(f'id="{name}"') == 1


async def test_htmx_gets_the_same_parts_and_nothing_else():
    run = await store(WHOLE)
    _, whole = await page(run, "4/")
    _, parts = await page(run, "4/", **{"HX-Request": "true"})
    assert "<html" not in parts
    assert parts.startswith("<title>")
    for fragment in re.split(r"(?=<\w+ id=\"\w+\" hx-swap-oob)", parts)[1:]:
        assert fragment.strip() in whole


async def test_pages_and_parts_are_kept_out_of_caches():
    response, _ = await page(await store(WHOLE), "4/")
    assert response.headers["Cache-Control"] == "no-store"
    assert "HX-Request" in response.headers["Vary"]


async def test_an_event_of_another_step_leads_to_its_own():
    run = await store(WHOLE)
    response, _ = await page(run, f"1/?event={len(WHOLE)}")
    assert response.headers["Location"].endswith(f"/walk/4/?event={len(WHOLE)}")


async def test_stepping_back_shows_less():
    run = await store(WHOLE)
    _, now = await page(run, "4/")
    _, before = await page(run, "3/")
    assert 'data-strip="remembered"' in now
    assert 'data-strip="open"' in before
    assert "Compute rose" not in visible(part(before, "conversation"))


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("walk/6/", 404),
        ("walk/1/?event=x", 400),
        ("walk/1/?event=²", 400),
        ("walk/1/?event=99999999999999999999", 400),
        ("events/?step=9", 404),
    ],
)
async def test_addresses_that_name_nothing(address, status):
    run = await store(WHOLE)
    response = await owner().get(f"/runs/{run.id}/{address}")
    assert response.status_code == status


async def test_an_unknown_run_is_not_found():
    for address in ("/runs/r-none/", "/runs/r-none/walk/0/", "/runs/r-none.json"):
        assert (await owner().get(address)).status_code == 404


async def test_a_run_as_json_has_its_verdict_and_events():
    run = await store(WHOLE)
    found = (await owner().get(f"/runs/{run.id}.json")).json()
    assert found["run"] == run.id
    assert found["config"] == Configuration().as_dict()
    assert (found["outcome"], found["path"]) == ("answers", ["B", "B"])
    assert [event["seq"] for event in found["events"]] == [*range(1, len(WHOLE) + 1)]


async def test_who_started_a_run_is_never_told():
    run = await store(WHOLE)
    for address in (f"/runs/{run.id}.json", f"/runs/{run.id}/walk/4/"):
        body = (await owner().get(address)).content.decode()
        assert run.started_by not in body
        assert OWNER not in body


# the five answers


async def test_the_five_answers_are_absent_before_turn_two_ends():
    run = await store(WHOLE[:-1])
    _, html = await page(run, "4/")
    assert 'data-decided="false"' in html
    assert not element(html, "answer-replica")


async def test_the_five_answers_of_the_default_run():
    _, html = await page(await store(WHOLE), "4/")
    assert 'data-replica="B" data-path="B,B"' in element(html, "answer-replica")
    lookup = element(html, "answer-lookup")
    assert 'data-asked-for="ctx-41" data-found="true" data-events="4"' in lookup
    assert 'data-stored-as="ctx-41"' in lookup
    assert 'data-events="5"' in element(html, "answer-seen")
    released = element(html, "answer-released")
    assert 'data-artifacts="1" data-intermediate="0" data-bytes="200"' in released
    assert 'data-switches="continuity,affinity"' in element(html, "answer-switch")


async def test_the_five_answers_when_it_forgot():
    chosen = Configuration(affinity=Toggle.OFF)
    _, html = await page(await store(recorded(FORGOT), chosen), "4/")
    assert 'data-replica="A" data-path="B,A"' in element(html, "answer-replica")
    assert 'data-found="false"' in element(html, "answer-lookup")
    assert 'data-events="1"' in element(html, "answer-seen")
    assert 'data-switches="affinity,sessions"' in element(html, "answer-switch")


# narrative


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "picks B again"),
        ({"continuity": Toggle.OFF}, "a name nothing was stored under"),
        ({"affinity": Toggle.OFF}, "A has never heard of ctx-41"),
        ({"sessions": Sessions.SHARED}, "any replica would do"),
        ({"output": Output.PER_EVENT}, "artifact by artifact"),
    ],
)
async def test_the_narrative_has_the_variant_of_the_switches(changed, words):
    run = await store((), Configuration(**changed))
    _, html = await page(run, "4/")
    assert words in visible(part(html, "story"))


async def test_the_narrative_names_the_replicas_that_were_measured():
    happened = Happened(replicas=("replica-a", "replica-a"), router=False)
    _, html = await page(await store(recorded(happened)), "4/")
    assert "picks A again" in visible(part(html, "story"))


async def test_the_narrative_of_one_replica_hands_nothing_over():
    alone = Recording().sent("Why?").verified("router")
    alone.chosen("replica-a", affinity=False, replicas=("a",))
    chosen = Configuration(affinity=Toggle.OFF)
    _, html = await page(await store(alone.events, chosen), "4/")
    assert "no other replica to take this one: A again" in visible(part(html, "story"))


async def test_the_narrative_follows_a_reply_that_went_elsewhere():
    moving = first_turn(Recording(), Happened())
    moving.sent("The compute line.", "task-1").verified("router")
    moving.chosen("replica-a", reason="affinity, replica-b is down")
    _, html = await page(await store(moving.events), "4/")
    assert "A has never heard of ctx-41" in visible(part(html, "story"))


async def test_the_narrative_of_a_surprise_tells_what_was_measured():
    run = await store(recorded(Happened(found=False)))
    for place in ("4/", "4/?event=20"):
        _, html = await page(run, place)
        story = visible(part(html, "story"))
        assert "says “answers”, the run says “asks”" in story
        assert "four earlier events" not in story


async def test_short_ids_do_not_break_at_their_hyphen():
    _, html = await page(await store(WHOLE), "4/")
    assert '<span class="id">ctx-41</span>' in part(html, "story")


async def test_a_store_nobody_read_yet_is_not_called_empty():
    recording = Recording().sent("Why?").looked_up("replica-b", "memory")
    recording.created("replica-b", "memory", "ctx-41")
    run = await store(recording.events)
    _, html = await page(run, "2/")
    text = visible(part(html, "ledger")).split("asked for")[0]
    assert text.count("not read yet") == 3
    assert "nothing stored" not in text
    _, html = await page(await store(ASKED), "3/")
    assert "nothing stored" in visible(part(html, "ledger"))


@pytest.mark.parametrize("action", ["next", "retry", "flip", "again"])
async def test_a_button_s_address_opened_by_hand_leads_to_the_run(action, sent):
    run = await store(ASKED)
    response = await owner().get(f"/runs/{run.id}/{action}/")
    assert response.headers["Location"] == f"/runs/{run.id}/"
    assert sent.turns == []


@pytest.mark.parametrize("address", ["/runs/", "/theme/"])
async def test_a_button_s_address_without_a_run_leads_to_the_start(address):
    client = owner()
    response = await client.get(address)
    assert (response.status_code, response.headers["Location"]) == (302, "/")
    assert (await client.put(address)).status_code == 405
    assert await run_count() == 0


# owner and reader


async def test_another_browser_may_read_and_is_told_so():
    run = await store(ASKED, session="x" * 32)
    response, html = await page(run, "3/")
    assert response.status_code == 200
    assert element(html, "read-only")
    assert "formaction" not in part(html, "moves")


@pytest.mark.parametrize("action", ["next", "retry", "flip", "again"])
@pytest.mark.parametrize("session", ["x" * 32, ""])
async def test_another_browser_changes_nothing(action, session, sent):
    run = await store(ASKED, session=session)
    form = {"turn": "2", "affinity": "off"}
    response = await owner().post(f"/runs/{run.id}/{action}/", form)
    assert response.status_code == 403
    assert "another browser session" in response.content.decode()
    assert sent.turns == []
    assert await run_count() == 1


async def test_a_form_of_another_site_is_refused(sent):
    run = await store()
    response = await owner(enforce_csrf_checks=True).post(f"/runs/{run.id}/next/")
    assert response.status_code == 403
    assert "expired" in response.content.decode()
    assert sent.turns == []


async def test_starting_a_run_makes_the_browser_its_owner(sent):
    client = AsyncClient()
    response = await client.post("/runs/", {"affinity": "off"})
    address = response.headers["Location"]
    run = await runs.get(address.split("/")[2])
    assert run.configuration == Configuration(affinity=Toggle.OFF)
    assert not element((await client.get(address)).content.decode(), "read-only")
    assert sent.turns == []


async def test_a_run_may_start_with_its_question_sent(sent):
    response = await AsyncClient().post("/runs/", {"send": "1"})
    assert response.headers["Location"].endswith("/walk/1/")
    assert [turn for _, turn in await sent.first()] == [1]


async def test_a_switch_has_the_positions_it_has():
    response = await AsyncClient().post("/runs/", {"affinity": "perhaps"})
    assert response.status_code == 400
    assert "perhaps" not in response.content.decode()


# sending


@pytest.mark.case(18)
async def test_a_double_click_sends_once(sent):
    run = await store()
    client = owner()
    clicks = [client.post(f"/runs/{run.id}/next/", {"turn": "1"}) for _ in range(5)]
    responses = await asyncio.gather(*clicks)
    assert {r.headers["Location"] for r in responses} == {f"/runs/{run.id}/walk/1/"}
    assert await sent.first() == [(run.id, 1)]


@pytest.mark.case(18)
async def test_a_late_second_click_does_not_send_the_next_turn(sent):
    run = await store(ASKED)
    response = await owner().post(f"/runs/{run.id}/next/", {"turn": "1"})
    assert response.headers["Location"].endswith("/walk/1/")
    assert (await runs.get(run.id)).turns_sent == 1
    assert sent.turns == []


async def test_next_without_a_turn_goes_through_what_is_recorded(sent):
    run = await store(ASKED)
    response = await owner().post(f"/runs/{run.id}/next/", {"event": "1"})
    assert response.headers["Location"].endswith("/walk/1/?event=2")
    response = await owner().post(f"/runs/{run.id}/next/")
    assert response.headers["Location"].endswith(f"/walk/{STEP_OF_TURN[2]}/")
    assert await sent.first() == [(run.id, 2)]


@pytest.mark.case(16)
async def test_a_page_loaded_while_a_turn_runs_says_so(sent):
    run = await store()
    client = owner()
    await client.post(f"/runs/{run.id}/next/", {"turn": "1"})
    _, html = await page(run, "1/", client)
    assert 'data-status="running"' in html
    assert "turn 1 is on its way" in visible(html)
    assert "Send the" not in visible(part(html, "moves"))
    assert '<noscript><meta http-equiv="refresh"' in html


@pytest.mark.case(16)
async def test_a_page_loaded_at_the_question_offers_the_reply():
    run = await store(ASKED, Configuration(affinity=Toggle.OFF))
    _, html = await page(run, "3/")
    assert "Send the reply" in visible(part(html, "moves"))
    assert "Which line item do you mean?" in visible(part(html, "conversation"))
    assert 'aria-checked="false"' in element(html, "switch-affinity")
    assert 'http-equiv="refresh"' not in html


async def test_a_silent_turn_names_the_replica_it_waits_for(monkeypatch):
    from datetime import timedelta

    from orchestrator import parts

    run = await store(ASKED[:5])
    monkeypatch.setattr(parts, "WAIT_NOTICE", timedelta(0))
    _, html = await page(run, "2/")
    assert "still waiting for replica B" in visible(part(html, "progress"))


async def test_a_turn_whose_sender_died_may_be_sent_again(monkeypatch, sent):
    from datetime import timedelta

    run = await store(ASKED[:5])
    monkeypatch.setattr(runs, "ABANDONED_AFTER", timedelta(0))
    _, html = await page(run, "2/")
    assert f'formaction="/runs/{run.id}/retry/"' in element(html, "retry")


async def test_a_claim_that_looks_void_is_looked_at_again(monkeypatch):
    from datetime import timedelta

    run = await store(ASKED[:5])
    kept = await snapshots.shared().fresh(run.id)
    assert await snapshots.shared().at_least(run.id, kept.seq) is kept
    await runs.renew_claim(run.id)
    monkeypatch.setattr(runs, "ABANDONED_AFTER", timedelta(0))
    again = await snapshots.shared().at_least(run.id, kept.seq)
    assert again.run.renewed_at > kept.run.renewed_at


# failing


def failing():
    recording = Recording()
    recording.sent("Why was invoice 8812 higher than last month?")
    return recording.verified("router").failed().events


async def test_a_failed_step_says_what_failed_and_offers_to_retry():
    run = await store(failing())
    _, html = await page(run, "1/")
    text = visible(part(html, "story"))
    assert "The billing agent could not be reached." in text
    assert "0123456789ab" in text
    assert f'formaction="/runs/{run.id}/retry/"' in element(html, "retry")


async def test_a_failure_further_on_is_told_and_led_to():
    recording = Recording()
    recording.sent("Why was invoice 8812 higher than last month?").verified("router")
    recording.chosen("replica-b").verified("replica-b").failed("failed.refused")
    run = await store(recording.events)
    _, html = await page(run, "1/")
    assert not element(html, "failure")
    assert "Turn 1 failed. See what failed" in visible(part(html, "progress"))
    link = re.search(r'href="([^"]+)"', element(html, "to-failure"))[1]
    assert element((await owner().get(link)).content.decode(), "failure")


async def test_a_failure_on_screen_is_told_once():
    run = await store(failing())
    _, html = await page(run, "1/")
    assert element(html, "failure")
    assert not element(html, "to-failure")


async def test_a_retry_sends_the_failed_turn_again(sent):
    run = await store(failing())
    response = await owner().post(f"/runs/{run.id}/retry/", {"turn": "1"})
    assert response.headers["Location"].endswith("/walk/1/")
    assert await sent.first() == [(run.id, 1)]


async def test_starting_over_keeps_the_switches():
    chosen = Configuration(output=Output.PER_EVENT)
    run = await store(failing(), chosen)
    response = await owner().post(f"/runs/{run.id}/again/")
    fresh = await runs.get(response.headers["Location"].split("/")[2])
    assert fresh.configuration == chosen
    assert fresh.last_seq == 0


async def test_a_part_that_is_down_is_hollow_and_says_so():
    _, html = await page(await store(WHOLE), "4/")
    assert "down since" in visible(part(html, "health"))
    assert "#shape-circle-hollow" in part(html, "topology")


async def test_error_pages_show_an_id_and_no_exception(monkeypatch, caplog):
    from orchestrator import views

    def broken(*_):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(views, "report", broken)
    run = await store(WHOLE)
    client = owner()
    client.raise_request_exception = False
    response = await client.get(f"/runs/{run.id}.json")
    html = response.content.decode()
    assert response.status_code == 500
    assert "secret" not in html
    assert "RuntimeError" not in html
    error_id = re.search(r'id="error-id">([0-9a-f]+)<', html)[1]
    assert f"[error_id={error_id}]" in caplog.text


# switches


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("continuity", "off"),
        ("affinity", "off"),
        ("output", "per-event"),
        ("sessions", "shared"),
    ],
)
async def test_a_flip_starts_a_twin_and_keeps_the_run(name, value):
    run = await store(WHOLE)
    response = await owner().post(f"/runs/{run.id}/flip/", {name: value})
    twin = await runs.get(response.headers["Location"].split("/")[2])
    assert twin.configuration == run.configuration.flipped(name)
    assert twin.twin_of_id == run.id
    assert (await runs.get(run.id)).last_seq == len(WHOLE)
    _, html = await page(twin, "0/")
    assert run.id in visible(html[html.index('id="twin"') :][:600])


async def test_htmx_is_told_to_load_the_twin_as_a_page():
    run = await store(WHOLE)
    response = await owner().post(
        f"/runs/{run.id}/flip/", {"affinity": "off"}, headers={"HX-Request": "true"}
    )
    assert response.headers["HX-Redirect"].startswith("/runs/r-")


async def test_the_position_a_switch_has_starts_nothing():
    run = await store(WHOLE)
    response = await owner().post(f"/runs/{run.id}/flip/", {"affinity": "on"})
    assert response.headers["Location"] == f"/runs/{run.id}/"
    assert await run_count() == 1


@pytest.mark.parametrize("form", [{}, {"affinity": "off", "output": "per-event"}])
async def test_a_flip_names_one_switch(form):
    run = await store()
    response = await owner().post(f"/runs/{run.id}/flip/", form)
    assert response.status_code == 400


# gap filling


async def test_a_page_that_has_everything_gets_nothing():
    run = await store(ASKED)
    response = await owner().get(f"/runs/{run.id}/events/?after={len(ASKED)}&step=3")
    assert response.status_code == 204


async def test_a_page_behind_gets_the_parts_of_its_place():
    run = await store(ASKED)
    response = await owner().get(f"/runs/{run.id}/events/?after=3&step=2")
    html = response.content.decode()
    assert f'data-seq="{len(ASKED)}"' in html
    assert 'data-step="2"' in html


async def test_a_page_whose_state_changed_gets_the_parts():
    run = await store(ASKED)
    address = f"/runs/{run.id}/events/?after={len(ASKED)}&step=3&have=other"
    assert (await owner().get(address)).status_code == 200


async def test_more_events_are_seen_by_the_next_reading():
    run = await store(ASKED[:4])
    await page(run, "2/")
    await record_rest(run)
    _, html = await page(run, "3/")
    assert f'data-seq="{len(ASKED)}"' in html


async def record_rest(run):
    for event in ASKED[4:]:
        await runs.append(run.id, event.part, event.kind, event.data)


# text


@pytest.mark.case(5)
async def test_text_comes_back_letter_by_letter():
    from html import unescape

    said = "Zürich 請求書 😀 a\u2028b\u2029c\u0085d\r\ne <b>&amp;"
    recording = Recording().sent(said)
    run = await store()
    await record(run, recording.events)
    _, html = await page(run, "1/")
    shown = re.search(r'<p class="text">(.*?)</p>', html, re.DOTALL)[1]
    assert unescape(shown) == said
    assert "<b>" not in shown


# theme


@pytest.mark.parametrize(("theme", "marked"), [("dark", True), ("system", False)])
async def test_the_theme_is_remembered_without_a_script(theme, marked):
    client = owner()
    here = {"Referer": "http://testserver/runs/r-1/walk/4/?event=20"}
    response = await client.post("/theme/", {"theme": theme}, headers=here)
    assert response.headers["Location"] == "/runs/r-1/walk/4/?event=20"
    html = (await client.get("/")).content.decode()
    assert ('data-theme="dark"' in html) is marked


@pytest.mark.parametrize(
    "referer",
    ["", "//evil.example", "https://evil.example/", "http://x//evil.example/"],
)
async def test_the_theme_form_leads_to_no_other_host(referer):
    here = {"Referer": referer}
    response = await owner().post("/theme/", {"theme": "dark"}, headers=here)
    assert response.headers["Location"] == "/"


# headers


async def test_only_our_own_files_may_run_or_style():
    response, html = await page(await store(WHOLE), "4/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", html)
