"""Settings: one list for the code, the documentation and the containers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil
import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands

from billing_agent.stores.pool import BOUNDED
from tests.child import Child
from web import environment, settings
from web.demo.running import RunningDemo, remove_record, write_record

ROOT = Path(environment.BASE_DIR)
ROW = re.compile(r"^\| `([A-Z_]+)` \| (?:`(.*?)`)? *\| (.+) \|$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    environment._of_running_demo.cache_clear()
    yield tmp_path
    environment._of_running_demo.cache_clear()


@pytest.fixture
def running(folder):
    def record(**settings):
        started = psutil.Process().create_time()
        settings = {"VAR_DIR": str(folder), **settings}
        write_record(RunningDemo(os.getpid(), started, True, settings, {}))
        environment._of_running_demo.cache_clear()

    return record


def test_documentation_lists_every_setting_with_its_default():
    page = (ROOT / "docs" / "settings.md").read_text()
    documented = [environment.Setting(*row) for row in ROW.findall(page)]
    assert documented == list(environment.SETTINGS)


def test_every_setting_is_read_by_the_settings_module():
    source = (ROOT / "web" / "settings.py").read_text()
    read = set(re.findall(r"environment\.\w+\(\"([A-Z_]+)\"", source)) | {"VAR_DIR"}
    assert read == {row.name for row in environment.SETTINGS}


def test_containers_use_settings_and_commands_that_exist():
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    declared = {row.name for row in environment.SETTINGS}
    services = compose["services"]
    parts = {name: each for name, each in services.items() if "build" in each}
    assert set(parts) == {"prepare", "web", "replica-a", "replica-b"}
    for part in parts.values():
        assert set(part["environment"]) <= declared
        assert part["command"][0] in get_commands()


def test_unknown_setting_is_a_mistake():
    with pytest.raises(KeyError):
        environment.text("NO_SUCH_SETTING")


def test_empty_variable_counts_as_unset(folder, monkeypatch):
    monkeypatch.setenv("OUTPUT", "")
    assert environment.text("OUTPUT") == "per-run"


def test_number_that_is_none_names_the_setting(monkeypatch):
    monkeypatch.setenv("RUN_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="RUN_TIMEOUT must be a number of 0 or more"):
        environment.number("RUN_TIMEOUT")


def test_pairs_keep_their_order(monkeypatch):
    monkeypatch.setenv("REPLICAS", "b=http://b:1, a=http://a:2/?x=y")
    found = environment.pairs("REPLICAS")
    assert list(found.items()) == [("b", "http://b:1"), ("a", "http://a:2/?x=y")]


@pytest.mark.parametrize("value", ["replica-a", "=http://a", "replica-a=", ","])
def test_pairs_that_are_none_name_the_setting(value, monkeypatch):
    monkeypatch.setenv("REPLICAS", value)
    with pytest.raises(environment.SettingUnusable, match=r"^REPLICAS must be "):
        environment.pairs("REPLICAS")


def test_choice_is_one_of_the_known_values(monkeypatch):
    monkeypatch.setenv("CANCEL", "none")
    assert environment.choice("CANCEL", "bus", "none") == "none"
    monkeypatch.setenv("CANCEL", "radio")
    with pytest.raises(
        environment.SettingUnusable, match=r"^CANCEL must be bus or none, not 'radio'$"
    ):
        environment.choice("CANCEL", "bus", "none")


def test_running_demo_lends_its_settings(running, monkeypatch):
    monkeypatch.delenv("WEB_URL", raising=False)
    running(WEB_URL="http://127.0.0.1:9000")
    assert environment.text("WEB_URL") == "http://127.0.0.1:9000"


def test_environment_wins_over_the_running_demo(running, monkeypatch):
    monkeypatch.setenv("WEB_URL", "http://127.0.0.1:9100")
    running(WEB_URL="http://127.0.0.1:9000")
    assert environment.text("WEB_URL") == "http://127.0.0.1:9100"


def test_stopped_demo_lends_nothing(running, folder, monkeypatch):
    monkeypatch.delenv("WEB_URL", raising=False)
    running(WEB_URL="http://127.0.0.1:9000")
    remove_record(folder)
    assert environment.text("WEB_URL") == "http://127.0.0.1:8000"


def test_half_a_record_is_no_demo(folder, monkeypatch):
    monkeypatch.delenv("WEB_URL", raising=False)
    (folder / "demo.json").write_text('{"pid": 1')
    assert environment.text("WEB_URL") == "http://127.0.0.1:8000"


def test_database_may_be_a_socket_folder_or_a_host():
    socket = settings._database("postgresql://postgres:@/postgres?host=/run/x")
    assert (socket["HOST"], socket["NAME"]) == ("/run/x", "postgres")
    host = settings._database("postgresql://u:p@db:5433/billing?sslmode=require")
    assert (host["HOST"], host["PORT"]) == ("db", "5433")
    assert host["OPTIONS"] == {**BOUNDED, "sslmode": "require"}


def test_database_url_that_is_none_is_named():
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL: "):
        settings._database("mysql://nowhere")


def test_database_url_that_is_none_is_one_line_for_a_person():
    with Child("manage.py", "prepare", DATABASE_URL="mysql://nowhere") as child:
        assert child.wait() == 2
        assert child.output.startswith("DATABASE_URL: ")
        assert "\n" not in child.output
