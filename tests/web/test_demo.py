"""The whole demo in real processes: that it starts, serves, heals and ends."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.child import Child
from tests.ports import free_port_base
from web.demo.keeper import answers_at

pytestmark = pytest.mark.processes

PARTS = ["postgres", "replica-a", "replica-b", "router", "web"]


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="i8812-cmd-"))
    yield path
    shutil.rmtree(path)


def until(condition, within=30):
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


def test_every_part_is_alive_and_ready(demo):
    for url in [demo.web_url, demo.router_url, *demo.replicas.values()]:
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_first_page_names_hashed_files_of_its_own_only(demo):
    page = httpx.get(demo.web_url + "/").text
    sheets = re.findall(r'href="([^"]+\.css)"', page)
    assert sheets
    for sheet in sheets:
        assert re.fullmatch(r"/static/.+\.[0-9a-f]{12}\.css", sheet)
        answer = httpx.get(demo.web_url + sheet)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_pages_answer_their_own_host_only(demo):
    answer = httpx.get(demo.web_url + "/", headers={"host": "evil.example"})
    assert answer.status_code == 400


def test_socket_of_another_origin_is_refused(demo):
    address = demo.web_url.replace("http", "ws") + "/ws/runs/r-none/"
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address, origin="http://evil.example"),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_killed_replica_comes_back(demo):
    before = demo.pid_of("replica-b")
    os.kill(before, signal.SIGKILL)
    until(lambda: demo.pid_of("replica-b") != before)
    until(lambda: answers_at(demo.replicas["replica-b"]))


def test_command_says_each_part_then_ready_and_leaves_with_ctrl_c(folder):
    base = free_port_base()
    unset = ("DATABASE_URL",)
    arguments = ("demo", f"--port-base={base}", "--no-open")
    with Child("manage.py", *arguments, unset=unset, VAR_DIR=str(folder)) as child:
        child.expect(f"ready http://127.0.0.1:{base}/")
        said = [line.split()[0] for line in child.output.splitlines()]
        assert said == [*PARTS, "ready"]
        other = ("demo", f"--port-base={free_port_base()}")
        with Child("manage.py", *other, unset=unset, VAR_DIR=str(folder)) as second:
            assert second.wait() == 2
            assert f"http://127.0.0.1:{base}" in second.output
            assert "\n" not in second.output
        child.send(signal.SIGINT)
        assert child.wait() == 0
    assert not (folder / "demo.json").exists()
    assert not (folder / "postgres" / "postmaster.pid").exists()


def test_other_commands_find_the_running_demo(demo):
    environment = {"VAR_DIR": str(demo.var_dir)}
    arguments = ("token", "--tenant", "acme")
    with Child("manage.py", *arguments, unset=("DATABASE_URL",), **environment) as it:
        assert it.wait() == 0
        assert it.output.count(".") == 2


async def test_many_pages_at_once_share_a_few_connections(demo):
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        asked = [client.get(f"{demo.web_url}/readyz") for _ in range(150)]
        answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {200}
