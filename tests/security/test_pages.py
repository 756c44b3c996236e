"""The pages from a stranger's browser: forms, cookies, text, sockets, admin."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from html import escape

import httpx
import pytest
from django.urls import URLPattern
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from billing_agent.identity.issuer import TOKEN_PATH
from orchestrator import runs, story
from orchestrator.config import Configuration
from orchestrator.urls import urlpatterns
from tests.billing_agent.contract.watch import rows
from tests.child import ROOT
from tests.story.commands import manage

pytestmark = pytest.mark.processes

HOSTILE = """</p><script>alert(1)</script><img src=x onerror=alert(1)>"'&{{7*7}}{%x%}"""
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


@pytest.fixture
async def browser(demo):
    async with httpx.AsyncClient(base_url=demo.web_url) as http:
        yield http


async def form_token(browser, path="/"):
    return TOKEN.search((await browser.get(path)).text)[1]


async def start(browser):
    """Start a run as a page does; return its id and the answer."""
    form = {"csrfmiddlewaretoken": await form_token(browser)}
    answer = await browser.post("/runs/", data=form)
    assert answer.status_code == 302
    return re.search(r"/runs/([\w-]+)/", answer.headers["location"])[1], answer


def addresses(run_id):
    """Return every address of the pages, filled in."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        route = str(pattern.pattern).replace("<slug:run_id>", run_id)
        yield "/" + route.replace("<int:step>", "1")


async def test_every_form_needs_a_token_of_the_page(browser):
    run_id, _ = await start(browser)
    for path in addresses(run_id):
        for form in ({"turn": "1"}, {"csrfmiddlewaretoken": "x" * 64}):
            answer = await browser.post(path, data=form)
            assert answer.status_code == 403, path
            assert "The form has expired" in answer.text
    run = (await browser.get(f"/runs/{run_id}.json")).json()
    assert run["events"] == []


async def test_form_of_another_origin_is_refused(browser):
    form = {"csrfmiddlewaretoken": await form_token(browser)}
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        answer = await browser.post("/runs/", data=form, headers={"Origin": origin})
        assert answer.status_code == 403


async def test_cookies_are_out_of_reach_of_scripts_and_other_sites(browser):
    first = await browser.get("/")
    _, started = await start(browser)
    cookies = [
        *first.headers.get_list("set-cookie"),
        *started.headers.get_list("set-cookie"),
    ]
    assert {cookie.partition("=")[0] for cookie in cookies} >= {"csrftoken", "visitor"}
    for cookie in cookies:
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie


@pytest.mark.parametrize(
    ("web_url", "secure"),
    [("https://demo.example", True), ("http://demo.example", False)],
)
def test_cookies_are_for_tls_only_where_there_is_tls(web_url, secure, tmp_path):
    code = (
        "from django.conf import settings as s;"
        "print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.CSRF_TRUSTED_ORIGINS)"
    )
    environment = {
        **os.environ,
        "WEB_URL": web_url,
        "VAR_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "web.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{secure} {secure} {[web_url]}"


async def test_answers_keep_the_browser_to_our_own_files(demo, browser):
    run_id, _ = await start(browser)
    paths = ["/", f"/runs/{run_id}/walk/0/", f"/runs/{run_id}.json", "/nothing"]
    paths += ["/admin/login/", "/runs/r-none/", "/runs/bad%20id/", "/oauth/jwks.json"]
    for path in paths:
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"


async def test_hostile_text_is_text_on_every_page(
    demo, orchestrator, browser, monkeypatch
):
    said = f"Remember {HOSTILE}"
    monkeypatch.setitem(story.TURNS, 1, said)
    switches = {"output": "per-event", "sessions": "shared"}
    run = await runs.create(Configuration.parse(switches))
    await story.send_turn(run, 1)
    recorded = await browser.get(f"/runs/{run.id}.json")
    assert recorded.headers["content-type"] == "application/json"
    events = recorded.json()["events"]
    assert any(event["data"].get("text") == said for event in events)
    pages = [f"/runs/{run.id}/walk/{step}/" for step in range(6)]
    pages += [f"/runs/{run.id}/walk/5/?event={event['seq']}" for event in events]
    pages += ["/", f"/runs/{run.id}/events/?step=5&after=0"]
    shown = 0
    for path in pages:
        answer = await browser.get(path, follow_redirects=True)
        assert answer.status_code == 200, path
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        shown += escape(HOSTILE).replace("&#x27;", "&#39;")[:40] in answer.text
        for element in re.findall(r"<[^>]*>", answer.text):
            assert not re.search(r"\son\w+=|javascript:", element), element
    assert shown >= 5


@pytest.mark.parametrize("path", ["/runs/<script>/", "/<script>alert(1)</script>"])
async def test_hostile_address_is_not_repeated_as_markup(browser, path):
    answer = await browser.get(path)
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text


async def test_socket_of_another_port_of_the_same_host_is_refused(demo, browser):
    run_id, _ = await start(browser)
    address = f"{demo.web_url.replace('http', 'ws')}/ws/runs/{run_id}/"
    for origin in ("http://127.0.0.1:1", "http://localhost", "null", None):
        with pytest.raises(InvalidStatus) as refused, connect(address, origin=origin):
            pass
        assert refused.value.response.status_code == 403
    with connect(address, origin=demo.web_url) as socket:
        socket.send(json.dumps({"do": "next"}))
        assert 'data-error="not-yours"' in socket.recv(timeout=10)


async def test_admin_is_for_users_that_were_made_on_purpose(
    demo, browser, make_peer, monkeypatch
):
    assert await rows(demo, "SELECT username FROM auth_user") == []
    pages = [f"{url}/admin/" for url in (demo.web_url, demo.replicas["replica-a"])]
    pages += [f"{pages[0]}billing_agent/auditentry/"]
    for page in pages:
        answer = await browser.get(page)
        assert answer.status_code == 302
        assert "/admin/login/" in answer.headers["location"]
    answer = await (await make_peer("router")).http.get("/admin/")
    assert "/admin/login/" in answer.headers["location"]

    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a-phrase-for-this-test")
    who = ("--username", "presenter", "--email", "presenter@demo.example")
    made = manage(demo, "createsuperuser", "--noinput", *who)
    assert made.returncode == 0, made.stderr
    try:
        form = {"username": "presenter", "password": "a-phrase-for-this-test"}
        form["csrfmiddlewaretoken"] = await form_token(browser, "/admin/login/")
        answer = await browser.post("/admin/login/?next=/admin/", data=form)
        assert answer.status_code == 302
        assert "HttpOnly" in answer.headers["set-cookie"]
        assert (await browser.get(pages[2])).status_code == 200
    finally:
        await rows(demo, "DELETE FROM django_admin_log")
        await rows(demo, "DELETE FROM auth_user")


async def test_secrets_are_made_at_first_use_for_their_owner_only(demo, make_peer):
    await make_peer()
    kept = ["secret-key", "client-orchestrator", "client-workshop", "issuer-key.json"]
    for name in kept:
        path = demo.var_dir / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(path.read_text()) >= 60
    assert stat.S_IMODE((demo.var_dir / "demo.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((demo.var_dir / "log").stat().st_mode) == 0o700


def test_repository_holds_no_secret(demo):
    secrets = [
        path.read_text().strip()
        for name in ("secret-key", "client-orchestrator", "client-workshop")
        if (path := demo.var_dir / name).exists()
    ]
    token = re.compile(r"eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{16,}")
    private_key = re.compile(r"BEGIN (\w+ )?PRIVATE KEY|\"d\": ?\"[\w-]{40,}")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no repository")
    for name in filter(None, listed.stdout.split("\0")):
        text = (
            (ROOT / name).read_text(errors="ignore") if (ROOT / name).exists() else ""
        )
        assert not token.search(text), name
        assert not private_key.search(text), name
        assert not any(secret in text for secret in secrets), name


async def test_token_endpoint_needs_no_form_token_but_the_clients_secret(browser):
    form = {"grant_type": "client_credentials", "tenant": "acme"}
    answer = await browser.post(TOKEN_PATH, data=form)
    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_client"
