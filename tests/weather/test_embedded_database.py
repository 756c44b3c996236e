"""The demo's own PostgreSQL dies, and the demo goes on with what it had."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
from pathlib import Path

import httpx
import pytest

from tests.billing_agent.contract.watch import until
from tests.conftest import peers_of
from tests.peer import state, texts
from tests.ports import free_port_base
from web.demo.supervisor import Demo

pytestmark = [pytest.mark.weather, pytest.mark.case(19)]

# So long that a socket does not fit beside the data.
DEEP = Path(*["a-folder-with-quite-a-long-name"] * 4)


@pytest.fixture(scope="module", params=["short path", "long path"])
def demo_of_its_own(request):
    folder = Path(tempfile.mkdtemp(prefix="i8812-demo-"))
    var_dir = folder / DEEP if request.param == "long path" else folder
    var_dir.mkdir(parents=True, exist_ok=True)
    inherited = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
    demo = Demo(port_base=free_port_base(), var_dir=var_dir, environment=inherited)
    with demo as running:
        yield running
    shutil.rmtree(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
async def test_a_database_that_died_comes_back_with_everything(demo_of_its_own, number):
    demo = demo_of_its_own
    subject = f"crash-{secrets.token_hex(4)}"
    async with peers_of(demo) as make:
        a, b = [await make(name, subject) for name in demo.replicas]
        done = await a.send("list my invoices", context_id="ctx-41")
        asked = await b.send("Why was invoice 8812 higher?", context_id="ctx-41")
        keeper = demo.pid_of("postgres")

        os.kill(_postmaster(demo), number)

        await until(lambda: _another(demo, keeper))
        for url in [demo.web_url, *demo.replicas.values()]:
            await until(lambda url=url: _ready(url))
        answered = await a.send("The compute line.", task_id=asked["id"])
        assert state(answered) == "COMPLETED"
        assert "1,055.00" in texts(answered)[0]
        assert await b.get(done["id"]) == done


def _postmaster(demo):
    pid_file = demo.var_dir / "postgres" / "postmaster.pid"
    return int(pid_file.read_text().splitlines()[0])


async def _another(demo, keeper):
    return demo.pid_of("postgres") != keeper


async def _ready(url):
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/readyz")).status_code == 200
