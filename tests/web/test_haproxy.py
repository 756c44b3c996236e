"""The HAProxy configuration of compose.yaml, in front of two real replicas."""

from __future__ import annotations

import shutil
import subprocess
import time
from urllib.parse import urlsplit

import httpx
import pytest

from tests.ports import free_port
from web.environment import BASE_DIR

pytestmark = pytest.mark.processes

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def router(demo, tmp_path_factory):
    """HAProxy with the real configuration, its names replaced by real addresses."""
    if HAPROXY is None:
        pytest.skip("HAProxy is not installed; make test installs it where it can")
    port = free_port()
    text = (BASE_DIR / "deploy" / "haproxy.cfg").read_text()
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    for number, (name, url) in enumerate(demo.replicas.items(), start=1):
        text = text.replace(f"{name}:800{number}", urlsplit(url).netloc)
    config = tmp_path_factory.mktemp("haproxy") / "haproxy.cfg"
    config.write_text(text)
    command = [HAPROXY, "-db", "-f", str(config)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


@pytest.fixture
def chosen(router):
    """Return a function that tells which replica answers."""
    with httpx.Client(base_url=router) as client:

        def ask(**headers):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            deadline = time.monotonic() + 20
            while (answer := client.get(CARD, headers=named)).status_code == 503:
                assert time.monotonic() < deadline, "no replica came up"
                time.sleep(0.1)
            assert answer.status_code == 200
            return answer.headers["x-replica"]

        yield ask


def test_configuration_is_valid():
    if HAPROXY is None:
        pytest.skip("HAProxy is not installed; make test installs it where it can")
    command = [HAPROXY, "-c", "-f", str(BASE_DIR / "deploy" / "haproxy.cfg")]
    subprocess.run(command, check=True, capture_output=True)


def test_it_answers_for_itself(router):
    transport = httpx.HTTPTransport(retries=20)
    with httpx.Client(transport=transport) as client:
        assert client.get(f"{router}/healthz").status_code == 200


def test_conversation_stays_on_one_replica(chosen):
    contexts = [f"ctx-{number}" for number in range(20)]
    first = [chosen(x_a2a_context=context) for context in contexts]
    second = [chosen(x_a2a_context=context) for context in contexts]
    assert first == second
    assert set(first) == {"replica-a", "replica-b"}


def test_affinity_off_takes_turns(chosen):
    path = {chosen(x_affinity="off", x_a2a_context="ctx-41") for _ in range(4)}
    assert path == {"replica-a", "replica-b"}
