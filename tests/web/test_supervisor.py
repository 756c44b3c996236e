"""The supervisor, with stand-ins for the parts and a real PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from billing_agent.serving import PortTaken
from tests.child import Child
from tests.ports import free_port_base
from tests.web.stand_in import parts_of
from web.demo import supervisor
from web.demo.keeper import DemoError, PartFailed
from web.demo.running import find_running
from web.demo.schema import DatabaseUnreachable
from web.demo.supervisor import Demo

pytestmark = pytest.mark.processes

PARTS = ["replica-a", "replica-b", "router", "web"]


@pytest.fixture
def base():
    return free_port_base()


@pytest.fixture
def folder():
    # Short enough for a socket, open enough for PostgreSQL's own user.
    path = Path(tempfile.mkdtemp(prefix="i8812-sup-"))
    yield path
    assert_nothing_runs(path)
    shutil.rmtree(path)


@pytest.fixture
def lines():
    return []


@pytest.fixture
def make(base, folder, lines):
    def make_demo(*options, **arguments):
        given = {
            "port_base": base,
            "var_dir": folder,
            "parts": parts_of(base, *options),
            "prepare": False,
            "say": lines.append,
        }
        return Demo(**{**given, **arguments})

    return make_demo


@pytest.fixture
def make_embedded(make):
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    return partial(make, environment=inherited)


@pytest.fixture
def process(base, folder):
    def start():
        return Child("-m", "tests.web.stand_in_demo", str(base), str(folder))

    return start


def until(condition, within=20):
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


def runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_of(folder):
    """Return every live process that was started for this folder."""
    found = []
    for process in psutil.process_iter():
        try:
            mine = str(folder) in " ".join(process.cmdline()) or (
                process.environ().get("VAR_DIR") == str(folder)
            )
        except psutil.Error:
            continue
        if mine and runs(process.pid):
            found.append(process)
    return found


def assert_nothing_runs(folder):
    until(lambda: not processes_of(folder))


def test_each_part_is_said_once_it_answers(make, lines, base):
    with make():
        assert [line.split()[0] for line in lines] == PARTS
        assert f"http://127.0.0.1:{base + 80}" in lines[2]


def test_parts_are_told_where_the_embedded_database_is(make_embedded, lines):
    with make_embedded() as running:
        assert [line.split()[0] for line in lines] == ["postgres", *PARTS]
        url = httpx.get(running.replicas["replica-b"]).text
        with psycopg.connect(url) as connection:
            shown = connection.execute("SHOW synchronous_commit").fetchone()
        assert shown == ("on",)


def test_one_replica_is_possible(make, base):
    with make(replicas=1, parts=parts_of(base)[:1]) as running:
        assert list(running.replicas) == ["replica-a"]


def test_running_demo_is_found_until_it_stops(make, folder):
    with make() as running:
        found = find_running(folder)
        assert found == running
        assert found.ready
        assert set(found.parts) == set(PARTS)
    assert find_running(folder) is None


def test_record_of_a_dead_demo_is_not_believed(make, folder):
    with make() as running:
        record = (folder / "demo.json").read_text()
    dead = json.loads(record) | {"started": running.started - 3600}
    (folder / "demo.json").write_text(json.dumps(dead))
    assert find_running(folder) is None


def test_record_is_kept_from_other_users(make, folder):
    with make():
        assert (folder / "demo.json").stat().st_mode & 0o077 == 0


def test_killed_part_comes_back(make, lines):
    with make() as running:
        before = running.pid_of("replica-b")
        os.kill(before, signal.SIGKILL)
        until(lambda: any("replica-b is back" in line for line in lines))
        assert "replica-b died (SIGKILL), starting it again" in lines
        assert running.pid_of("replica-b") != before


def test_killed_database_comes_back_at_the_same_address(make_embedded, lines, folder):
    with make_embedded() as running:
        url = running.environment["DATABASE_URL"]
        pid_file = folder / "postgres" / "postmaster.pid"
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        until(lambda: any("postgres is back" in line for line in lines))
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_part_that_cannot_start_is_named_with_its_output(make, folder):
    with pytest.raises(PartFailed) as caught, make("--fail"):
        pass
    assert str(caught.value) == (
        "replica-a ended with 1 while starting: this part cannot start"
    )
    assert find_running(folder) is None


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", ""),
        ("ready\nCommandError: port 1 is taken\n", "CommandError: port 1 is taken"),
        (
            "Traceback (most recent call last):\n"
            '  File "a.py", line 1, in f\n    g()\n    ^^^\n'
            "ValueError: no model x.\n\nInstall y.\n",
            "ValueError: no model x.",
        ),
    ],
)
def test_a_part_that_ended_is_quoted_with_the_line_that_says_why(output, why):
    assert (
        str(PartFailed("web", 1, output)) == f"web ended with 1 while starting: {why}"
    )


def test_deaf_part_is_killed(make, monkeypatch, folder):
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.2)
    with make("--deaf"):
        pass
    assert processes_of(folder) == []


def test_taken_port_is_named_and_nothing_is_left(make, base):
    with (
        Child("tests/web/stand_in.py", str(base + 80), DATABASE_URL="none") as other,
        pytest.raises(PortTaken, match=rf"port {base + 80} is taken.*--port-base"),
    ):
        until(lambda: _listens(base + 80))
        with make():
            pass
        other.wait()


def test_unreachable_database_is_one_line(make):
    nowhere = {**os.environ, "DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/x"}
    with pytest.raises(DatabaseUnreachable) as caught:
        make(environment=nowhere, prepare=True).__enter__()
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_folder_that_cannot_be_used_is_one_line(make, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DemoError, match="VAR_DIR cannot be used"):
        make(var_dir=tmp_path / "file").__enter__()


def test_second_demo_on_the_data_is_told_where_the_first_is(process, base, folder):
    with process() as first:
        first.expect("ready")
        other_ports = str(free_port_base())
        with Child("-m", "tests.web.stand_in_demo", other_ports, str(folder)) as second:
            assert second.wait() == 1
            assert f"a demo already runs on {folder}" in second.output
            assert f"http://127.0.0.1:{base}" in second.output
        first.send(signal.SIGTERM)
        assert first.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_everything(process, folder, number):
    with process() as child:
        child.expect("ready")
        child.send(number)
        assert child.wait() == 0
        assert child.output.endswith("stopped")
        assert processes_of(folder) == []


def test_signal_while_starting_stops_everything(process, folder):
    with process() as child:
        child.expect("postgres")
        child.send(signal.SIGINT)
        assert child.wait() == 0
        assert processes_of(folder) == []


def test_killed_supervisor_takes_every_process_with_it(process, folder):
    with process() as child:
        child.expect("ready")
        assert len(processes_of(folder)) > len(PARTS)
        child.send(signal.SIGKILL)
        child.wait()
        assert_nothing_runs(folder)


def test_demo_starts_on_what_a_killed_one_left(process, make_embedded, folder):
    with process() as child:
        child.expect("ready")
        child.send(signal.SIGKILL)
        child.wait()
    until(lambda: not processes_of(folder))
    with make_embedded() as running:
        assert running.ready


def test_pid_file_of_a_crash_does_not_mislead(make_embedded, folder):
    with make_embedded():
        lines = (folder / "postgres" / "postmaster.pid").read_text().splitlines()
    stale = "\n".join([str(os.getpid()), *lines[1:]]) + "\n"
    (folder / "postgres" / "postmaster.pid").write_text(stale)
    with make_embedded() as running:
        url = running.environment["DATABASE_URL"]
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def _listens(port):
    return any(
        found.laddr.port == port and found.status == psutil.CONN_LISTEN
        for found in psutil.net_connections("tcp4")
    )
