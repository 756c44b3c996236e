"""``manage.py demo`` and its neighbours, from a shell's point of view."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.child import ROOT, Child
from tests.ports import free_port, free_port_base


def no_database(folder: Path) -> dict[str, object]:
    return {"unset": ("DATABASE_URL",), "VAR_DIR": str(folder)}


def test_taken_port_is_one_line_and_exit_2(tmp_path):
    base = free_port_base()
    with (
        socket.create_server(("127.0.0.1", base + 2)),
        Child(
            "manage.py", "demo", f"--port-base={base}", **no_database(tmp_path)
        ) as it,
    ):
        assert it.wait() == 2
        assert it.output == f"port {base + 2} is taken; choose another with --port-base"
    assert not (tmp_path / "postgres").exists()
    assert not (tmp_path / "demo.json").exists()


def test_unreachable_database_is_one_line_and_exit_2(tmp_path):
    base = free_port_base()
    nowhere = f"postgresql://someone:secret@127.0.0.1:{free_port()}/billing"
    environment = {"VAR_DIR": str(tmp_path), "DATABASE_URL": nowhere}
    with Child("manage.py", "demo", f"--port-base={base}", **environment) as it:
        assert it.wait() == 2
        assert it.output.startswith("DATABASE_URL cannot be reached: ")
        assert "\n" not in it.output
        assert "secret" not in it.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["demo", "--replicas", "3"], "argument --replicas: invalid choice"),
        (["demo", "--port-base", "high"], "argument --port-base: invalid int value"),
        (["demo", "--port-base", "65456"], "--port-base is 1 to 65455, not 65456"),
        (["demo", "--port-base", "-5"], "--port-base is 1 to 65455, not -5"),
    ],
)
def test_impossible_option_is_named(arguments, complaint, tmp_path):
    with Child("manage.py", *arguments, VAR_DIR=str(tmp_path)) as it:
        assert it.wait() == 2
        assert complaint in it.output


def test_folder_that_cannot_be_used_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "file").touch()
    with Child("manage.py", "demo", VAR_DIR=str(tmp_path / "file" / "var")) as it:
        assert it.wait() == 2
        assert it.output.startswith("VAR_DIR cannot be used: ")
        assert "\n" not in it.output


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        (
            "RUN_TIMEOUT",
            "soon",
            "RUN_TIMEOUT must be a number of 0 or more, not 'soon'",
        ),
        ("RUN_TIMEOUT", "-1", "RUN_TIMEOUT must be a number of 0 or more, not '-1'"),
        ("POOL_SIZE", "inf", "POOL_SIZE must be a number of 0 or more, not 'inf'"),
        ("SESSIONS", "disk", "SESSIONS must be memory or shared, not 'disk'"),
    ],
)
def test_unusable_setting_is_one_line_and_exit_2(name, value, complaint, tmp_path):
    with Child("manage.py", "demo", VAR_DIR=str(tmp_path), **{name: value}) as it:
        assert it.wait() == 2
        assert it.output == complaint


@pytest.mark.parametrize("part", [["serve_web"], ["replica", "replica-a"]])
def test_part_without_a_database_is_one_line_and_exit_2(part, tmp_path):
    command = ["manage.py", *part, f"--port={free_port()}"]
    with Child(*command, **no_database(tmp_path)) as it:
        assert it.wait() == 2
        assert it.output.removeprefix("CommandError: ") == "DATABASE_URL is not set"


@pytest.mark.parametrize("part", [["serve_web"], ["replica", "replica-a"]])
def test_part_whose_database_is_away_is_one_line_and_exit_2(part, tmp_path):
    nowhere = f"postgresql://someone:secret@127.0.0.1:{free_port()}/billing"
    environment = {"VAR_DIR": str(tmp_path), "DATABASE_URL": nowhere}
    with Child("manage.py", *part, f"--port={free_port()}", **environment) as it:
        assert it.wait() == 2
        last = it.output.splitlines()[-1].removeprefix("CommandError: ")
        assert last == "the database of DATABASE_URL cannot be reached"
        assert "Traceback" not in it.output
        assert "secret" not in it.output


@pytest.mark.parametrize("command", ["prepare", "seed", "sweep"])
def test_command_without_a_database_is_one_line_and_exit_2(command, tmp_path):
    with Child("manage.py", command, **no_database(tmp_path)) as it:
        assert it.wait() == 2
        complaint = "no demo runs here, and DATABASE_URL is not set"
        assert it.output == f"CommandError: {complaint}"


@pytest.mark.parametrize("command", ["prepare", "seed", "sweep"])
def test_command_whose_database_is_away_is_one_line_and_exit_2(command, tmp_path):
    nowhere = f"postgresql://someone:secret@127.0.0.1:{free_port()}/billing"
    environment = {"VAR_DIR": str(tmp_path), "DATABASE_URL": nowhere}
    with Child("manage.py", command, **environment) as it:
        assert it.wait() == 2
        complaint = "the database of DATABASE_URL cannot be reached"
        assert it.output == f"CommandError: {complaint}"


def test_web_names_its_taken_port(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with Child(
            "manage.py", "serve_web", f"--port={port}", VAR_DIR=str(tmp_path)
        ) as it:
            assert it.wait() == 2
            assert it.output == f"port {port} is taken; choose another with --port"


def test_makefile_helps_with_every_verb():
    makefile = (ROOT / "Makefile").read_text()
    verbs = makefile.split(".PHONY: ")[1].splitlines()[0].split()
    assert all(f"\n{verb}:" in makefile for verb in verbs)
    assert {"demo", "test", "check", "contract", "weather", "bench"} <= set(verbs)
