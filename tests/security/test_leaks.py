"""``make leakcheck``: canaries in every error and secret, looked for everywhere.

The demo runs with a database, a folder and errors whose texts can be recognised. Its
main flows run well, then with each part broken, then without the database. Whatever
an outsider gets to hear is kept and searched: only the log may tell, and of secrets
not even the log.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.child import ROOT
from tests.peer import token
from tests.ports import free_port_base
from tests.security import heard as ears
from tests.security.bindings import BINDINGS, REST, RPC, ask, message
from tests.security.leaky import BREAKS
from tests.security.outsider import QUESTION, SECONDS, Outsider
from tests.story.commands import manage
from web.demo.layout import Layout
from web.demo.supervisor import Demo

pytestmark = [pytest.mark.processes, pytest.mark.leakcheck]


@contextmanager
def leaky_demo(canaries, folder, database):
    """Run the demo from parts that break on request."""
    base = free_port_base()
    parts = [
        replace(part, command=("tests/security/leaky.py", *part.command[1:]))
        for part in Layout(base).parts()
    ]
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "CANARY_EXCEPTION": canaries.exception,
        "PYTHONPATH": str(ROOT),
        "RATE_BURST": "5000",
        "BLOCKING_WAIT": "2",
        "CONSUMPTION_WAIT": "1",
    }
    demo = Demo(
        port_base=base,
        var_dir=folder,
        environment=environment,
        parts=parts,
        say=lambda line: None,
    )
    with demo as running:
        yield running


@pytest.fixture
def canaries():
    return ears.Canaries()


@pytest.fixture
async def outsider(canaries):
    """Somebody in front of a running demo whose every secret is a canary."""
    server = os.environ["TEST_DATABASE_URL"]
    database = ears.new_database(server, canaries)
    folder = Path(tempfile.mkdtemp(prefix=f"i8812-{canaries.folder}-"))
    try:
        with leaky_demo(canaries, folder, database) as demo:
            outsider = Outsider(demo, canaries)
            yield outsider
            await outsider.close()
    finally:
        ears.drop_database(server, canaries)
        shutil.rmtree(folder)


async def everything_runs(outsider):
    demo = outsider.demo
    await outsider.play()
    for number, url in enumerate([demo.router_url, *demo.replicas.values()]):
        await outsider.speak(f"peer-{number}", url)
        await outsider.knock(url)


async def everything_breaks(outsider):
    for part, words in BREAKS.items():
        for word in words:
            with outsider.during(word):
                if part == "serve_web" or word in {"tool", "session", "routing"}:
                    await outsider.play()
                if part != "serve_web":
                    await outsider.speak(f"peer-{word}", outsider.demo.router_url)
                else:
                    await outsider.ask_for_a_token()


async def database_is_away(outsider, server):
    """Do, all at once, what can be done without a database; tokens are from before."""
    demo, web = outsider.demo, outsider.demo.web_url
    bearer = await token(demo, "peer-0")
    headers = {"Authorization": f"Bearer {bearer}", "A2A-Version": "1.0"}
    ears.open_database(server, outsider.canaries, is_open=False)
    outsider.phase = "outage"
    pages = ["/", "/runs/r-none/", "/runs/r-none.json", "/readyz", "/admin/login/"]
    async with httpx.AsyncClient(
        base_url=demo.router_url, headers=headers, timeout=SECONDS
    ) as http:

        async def call(binding, method, params):
            answer = await ask(http, binding, method, params)
            outsider.heard.hear(f"{binding} outage", answer)

        async with asyncio.TaskGroup() as together:
            for url in (demo.router_url, *demo.replicas.values()):
                together.create_task(outsider.knock(url))
            for binding in BINDINGS:
                for method in ("SendMessage", "SendStreamingMessage"):
                    together.create_task(call(binding, method, message(QUESTION)))
                together.create_task(call(binding, "ListTasks", {}))
                together.create_task(call(binding, "GetTask", {"id": "unknown"}))
            for path in pages:
                together.create_task(outsider.get("page", web + path))
            together.create_task(outsider.ask_for_a_token())
    ears.open_database(server, outsider.canaries, is_open=True)


@pytest.mark.statement(24)
@pytest.mark.statement(47)
async def test_only_the_log_tells_and_of_secrets_not_even_the_log(
    outsider, canaries, monkeypatch
):
    demo, heard = outsider.demo, outsider.heard
    await everything_runs(outsider)
    await everything_breaks(outsider)
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a-phrase-for-this-test")
    who = ("--username", "presenter", "--email", "presenter@demo.example")
    assert manage(demo, "createsuperuser", "--noinput", *who).returncode == 0
    await outsider.administer()
    ears.hear_tables(heard, demo.environment["DATABASE_URL"])
    await database_is_away(outsider, os.environ["TEST_DATABASE_URL"])

    logs = ears.Heard()
    for log in (demo.var_dir / "log").glob("*.log"):
        logs.hear(f"log {log.stem}", log.read_text())
    nobody = canaries.for_nobody(demo.var_dir)
    leaks = heard.leaks([*canaries.for_the_log(), *nobody, *ears.TRACES])
    leaks += logs.leaks(nobody)
    assert not leaks, "\n".join(leaks[:20])

    # What should be heard was heard: the search looks where it says it looks.
    for where in (RPC, REST, "table billing_agent_a2atask", "admin"):
        assert heard.holding(canaries.visible, where), where
    for where in ("page", "run", "frame", "table orchestrator_runevent"):
        assert heard.holding("invoice 8812", where), where
    for where in (
        "ledger",
        "refusal",
        "open",
        "issuer",
        f"{RPC} outage",
        "page outage",
    ):
        assert heard.holding("", where), where
    # And the plants went off.
    for part in ("replica-a", "replica-b", "web", "router"):
        assert logs.holding(canaries.exception, f"log {part}"), part
    for planted in canaries.for_the_log():
        assert logs.holding(planted), planted
    assert heard.holding("error_id: ", RPC)
    assert heard.holding("error_id: ", REST)


def test_search_finds_what_is_there(canaries):
    """The check would be worth nothing if it could not fail."""
    heard = ears.Heard()
    heard.hear("page", f"all is well {canaries.visible}")
    assert heard.leaks([*canaries.for_the_log(), *ears.TRACES]) == []
    for needle in (*canaries.for_the_log(), canaries.password, *ears.TRACES):
        spilt = ears.Heard()
        answer = httpx.Response(500, headers={"X-Error": needle}, text="sorry")
        spilt.hear("answer", answer)
        assert len(spilt.leaks([needle])) == 1
