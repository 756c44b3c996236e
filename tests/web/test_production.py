"""What a process refuses to start with when others can reach it."""

from __future__ import annotations

import pytest

from billing_agent.serving import Exposed, check_exposure, is_loopback
from tests.child import Child
from tests.ports import free_port
from web.production import check_secrets

RANDOM = "yTq2-n0fK3vJ8sLwZ5xB1cRmD7hGpAeUo4iWkXjQrNtVbSgFlMzCdHy6"
EVERYWHERE = "0.0.0.0"  # noqa: S104
COMMANDS = (("router",), ("serve_web",), ("replica", "replica-a"))


@pytest.fixture
def production(settings, monkeypatch):
    """Settings that may be served to everybody; a test spoils one of them."""
    settings.DEBUG = settings.DEMO_SWITCHES = False
    settings.SECRET_KEY = RANDOM
    settings.OIDC_ISSUER = "https://issuer.example"
    monkeypatch.setenv("SECRET_KEY", RANDOM)
    monkeypatch.setenv("OIDC_CLIENT_SECRET", RANDOM)
    monkeypatch.delenv("ADK_DEBUG_ERRORS", raising=False)
    return settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_this_machine_alone_is_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.168.1.7", "demo.example", ""])
def test_everything_else_may_be_reached(host):
    assert not is_loopback(host)


def test_production_may_be_served(production):
    check_exposure(EVERYWHERE)
    check_secrets(EVERYWHERE)


@pytest.mark.parametrize("name", ["SECRET_KEY", "OIDC_CLIENT_SECRET"])
def test_generated_secret_is_the_demos(production, monkeypatch, name):
    monkeypatch.setenv(name, "")
    with pytest.raises(Exposed, match=name):
        check_secrets(EVERYWHERE)
    check_secrets("127.0.0.1")


def test_own_issuer_is_the_demos(production):
    production.OIDC_ISSUER = production.WEB_URL
    with pytest.raises(Exposed, match="OIDC_ISSUER"):
        check_secrets(EVERYWHERE)
    check_secrets("127.0.0.1")


def test_demo_that_says_so_may_be_served_on_its_random_secrets(production, monkeypatch):
    production.DEMO_SWITCHES = True
    production.OIDC_ISSUER = production.WEB_URL
    monkeypatch.setenv("SECRET_KEY", "")
    check_secrets(EVERYWHERE)


@pytest.mark.parametrize("demo", [True, False])
@pytest.mark.parametrize("key", ["short", "x" * 60, "django-insecure-" + RANDOM])
def test_plain_secret_key_is_refused(production, demo, key):
    production.DEMO_SWITCHES = demo
    production.SECRET_KEY = key
    with pytest.raises(Exposed, match="SECRET_KEY"):
        check_secrets(EVERYWHERE)


def test_debug_stays_on_this_machine(production):
    production.DEBUG = True
    with pytest.raises(Exposed, match="DEBUG"):
        check_exposure(EVERYWHERE)
    check_exposure("127.0.0.1")


@pytest.mark.statement(26)
@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
def test_shown_exceptions_stay_on_this_machine(production, monkeypatch, value):
    monkeypatch.setenv("ADK_DEBUG_ERRORS", value)
    with pytest.raises(Exposed, match="ADK_DEBUG_ERRORS"):
        check_exposure(EVERYWHERE)
    check_exposure("127.0.0.1")


@pytest.mark.statement(26)
@pytest.mark.parametrize("value", ["", "0", "false", "yes", "on", " 1"])
def test_what_shows_no_exceptions_is_no_danger(production, monkeypatch, value):
    monkeypatch.setenv("ADK_DEBUG_ERRORS", value)
    check_exposure(EVERYWHERE)


@pytest.mark.processes
@pytest.mark.parametrize("spoilt", ["ADK_DEBUG_ERRORS", "DEBUG"])
@pytest.mark.parametrize("command", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_command_refuses_with_one_line(command, spoilt, tmp_path):
    options = (f"--host={EVERYWHERE}", f"--port={free_port()}")
    environment = {"VAR_DIR": str(tmp_path), "DEMO_SWITCHES": "1", spoilt: "1"}
    with Child("manage.py", *command, *options, **environment) as it:
        assert it.wait() == 2
        assert spoilt in it.output.splitlines()[-1]
        assert "Traceback" not in it.output


@pytest.mark.processes
@pytest.mark.parametrize("command", COMMANDS[1:], ids=["serve_web", "replica"])
def test_command_refuses_the_demos_secrets_with_one_line(command, tmp_path):
    options = (f"--host={EVERYWHERE}", f"--port={free_port()}")
    environment = {"VAR_DIR": str(tmp_path), "DEMO_SWITCHES": "0"}
    with Child("manage.py", *command, *options, **environment) as it:
        assert it.wait() == 2
        assert "SECRET_KEY is the demo's own" in it.output
        assert "Traceback" not in it.output
