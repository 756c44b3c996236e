"""The HAProxy configuration of compose.yaml, in front of two real replicas."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest

from tests.conftest import running_demo
from tests.ports import free_port
from tests.story.commands import manage_json
from web.demo.layout import NAMES, ROUTER_OFFSET, Layout
from web.environment import BASE_DIR

pytestmark = pytest.mark.processes

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def haproxy():
    """The program, or none where it cannot be installed."""
    if HAPROXY is None:
        pytest.skip("HAProxy is not installed; make test installs it where it can")
    return HAPROXY


def write_config(path, port, replicas):
    """Write the real configuration, its names replaced by real addresses."""
    text = (BASE_DIR / "deploy" / "haproxy.cfg").read_text()
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    for number, (name, url) in enumerate(replicas.items(), start=1):
        text = text.replace(f"{name}:800{number}", urlsplit(url).netloc)
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def router(haproxy, demo, tmp_path_factory):
    """HAProxy in front of the demo's replicas, beside the embedded router."""
    port = free_port()
    path = tmp_path_factory.mktemp("haproxy") / "haproxy.cfg"
    command = [haproxy, "-db", "-f", write_config(path, port, demo.replicas)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    url = f"http://127.0.0.1:{port}"
    _wait_for_both(url)
    yield url
    process.terminate()
    process.wait()


def _wait_for_both(url):
    """Wait until both ways of routing know both replicas."""
    headers = [{"X-A2A-Context": f"ctx-{number}"} for number in range(20)]
    headers += [named | {"X-Affinity": "off"} for named in headers[:2] * 2]
    deadline = time.monotonic() + 30
    with httpx.Client(transport=httpx.HTTPTransport(retries=20)) as client:

        def seen(asked):
            answers = [client.get(f"{url}{CARD}", headers=each) for each in asked]
            return {answer.headers.get("x-replica") for answer in answers}

        while not seen(headers[:20]) == seen(headers[20:]) == {*NAMES}:
            assert time.monotonic() < deadline, "HAProxy does not know both replicas"
            time.sleep(0.1)


@pytest.fixture
def chosen(router):
    """Return a function that tells which replica answers."""
    with httpx.Client(base_url=router) as client:

        def ask(**headers):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = client.get(CARD, headers=named)
            assert answer.status_code == 200
            return answer.headers["x-replica"]

        yield ask


def test_configuration_is_valid(haproxy):
    command = [haproxy, "-c", "-f", str(BASE_DIR / "deploy" / "haproxy.cfg")]
    subprocess.run(command, check=True, capture_output=True)


def test_it_answers_for_itself(router):
    assert httpx.get(f"{router}/healthz").status_code == 200


def test_conversation_stays_on_one_replica(chosen):
    contexts = [f"ctx-{number}" for number in range(20)]
    first = [chosen(x_a2a_context=context) for context in contexts]
    second = [chosen(x_a2a_context=context) for context in contexts]
    assert first == second
    assert set(first) == {"replica-a", "replica-b"}


def test_affinity_off_takes_turns(chosen):
    path = {chosen(x_affinity="off", x_a2a_context="ctx-41") for _ in range(4)}
    assert path == {"replica-a", "replica-b"}


def test_turns_are_taken_within_a_callers_conversation(chosen):
    def turn(caller, context):
        return chosen(x_affinity="off", x_a2a_context=context, authorization=caller)

    assert turn("Bearer one", "ctx-41") == "replica-b"
    assert turn("Bearer two", "ctx-41") == "replica-b"
    assert turn("Bearer one", "ctx-7") == "replica-b"
    assert turn("Bearer one", "ctx-41") == "replica-a"
    assert turn("Bearer one", "ctx-41") == "replica-b"


def test_all_sixteen_combinations_are_as_predicted_behind_it(haproxy, tmp_path):
    def with_haproxy(part):
        if part.name != "router":
            return part
        port = urlsplit(part.place).port
        replicas = Layout(port - ROUTER_OFFSET).replica_urls
        config = write_config(tmp_path / "haproxy.cfg", port, replicas)
        return replace(part, command=("tests/web/haproxy.py", haproxy, config))

    with running_demo(with_haproxy) as demo:
        _wait_for_both(demo.router_url)
        assert manage_json(demo, "matrix")["as_predicted"] == 16
