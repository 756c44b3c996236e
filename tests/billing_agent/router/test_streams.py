"""The router command in its own process, between a client and real replicas."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from tests.billing_agent.identity.issuers import TestIssuer
from tests.child import Child
from tests.ports import free_port

pytestmark = pytest.mark.processes
SEND = {"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": {}}
SEND["params"] = {"message": {"messageId": "m", "contextId": "ctx-41"}}
TIMEOUT = httpx.Timeout(20)


@contextmanager
def served(issuer):
    """Serve the issuer's metadata and keys on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            request = httpx.Request("GET", issuer.issuer + self.path)
            answer = issuer.transport.handle_request(request)
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *args):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.issuer = f"http://127.0.0.1:{server.server_port}"
        issuer.answers = issuer.metadata()
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def address_of(child):
    return child.expect("ready ").split()[1].rstrip("/")


class Front:
    """A router's process, and where it looks for its replicas."""

    def __init__(self):
        self.issuer = TestIssuer()
        self.ports = {"replica-a": free_port(), "replica-b": free_port()}
        self.port = free_port()

    def start(self):
        addresses = [f"{name}=http://127.0.0.1:{p}" for name, p in self.ports.items()]
        environment = {
            "REPLICAS": ",".join(addresses),
            "OIDC_ISSUER": self.issuer.issuer,
            "DRAIN_GRACE": "1",
        }
        return Child("manage.py", "router", "--port", str(self.port), **environment)

    def replica(self, name):
        module = "tests.billing_agent.router.stub_replica"
        return Child("-m", module, name, str(self.ports[name]))


@pytest.fixture(scope="module")
def front():
    front = Front()
    with served(front.issuer), front.start() as front.router:
        address_of(front.router)
        yield front


class Stand:
    """Two replicas, a router in front of them, and a client with a token."""

    def __init__(self, front, a, b):
        self.front, self.a, self.b = front, a, b
        token = front.issuer.token()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{front.port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT,
            trust_env=False,
        )

    def stream(self, path="/a2a/", document=SEND, **headers):
        return self.http.stream("POST", path, json=document, headers=headers)

    def tell(self, replica, path):
        httpx.get(address_of(replica) + path, timeout=TIMEOUT, trust_env=False)


@pytest.fixture
def stand(front):
    with front.replica("replica-a") as a, front.replica("replica-b") as b:
        address_of(a), address_of(b)
        stand = Stand(front, a, b)
        yield stand
        stand.http.close()


@pytest.mark.case(12)
def test_stream_arrives_event_by_event_and_uncompressed(stand):
    with stand.stream(**{"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        assert answer.headers["x-replica"] == "replica-b"
        events = answer.iter_text()
        assert next(events) == "data: first\n\n"
        for _ in range(3):
            stand.tell(stand.b, "/more")
            assert next(events) == "data: more\n\n"
        stand.tell(stand.b, "/end")
        assert "".join(events) == ""
    stand.b.expect("asked identity")


def test_client_that_leaves_is_noticed_at_the_replica(stand):
    with stand.stream() as answer:
        next(answer.iter_text())
    stand.b.expect("client left")


@pytest.mark.parametrize("path", ["/a2a/", "/a2a/rest/message:stream"])
def test_replica_that_dies_ends_the_stream_with_an_error(stand, path):
    document = SEND if path == "/a2a/" else SEND["params"]
    with stand.stream(path, document) as answer:
        events = answer.iter_text()
        next(events)
        stand.b.process.kill()
        last = "".join(events).strip()
    name, _, data = last.rpartition("data: ")
    error = json.loads(data)
    if path == "/a2a/":
        assert (name, error["id"], error["error"]["code"]) == ("", 7, -32603)
    else:
        assert (name, error["error"]["code"]) == ("event: error\n", 502)


def test_answer_that_breaks_off_is_an_error(stand):
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(stand.http.get, "/cut")
        stand.a.expect("half sent")
        stand.a.process.kill()
        answer = asking.result()
    assert answer.status_code == 502
    assert answer.json()["error"]["status"] == "UNAVAILABLE"


def test_replica_that_is_gone_is_replaced_at_once(stand):
    stand.b.process.kill()
    stand.b.process.wait()
    with stand.stream() as answer:
        assert answer.headers["x-replica"] == "replica-a"
        assert answer.headers["x-route-reason"] == "affinity, replica-b is down"


def test_name_the_client_called_is_passed_on(stand):
    answer = stand.http.get("/a2a/rest/tasks", headers={"Host": "localhost:1"})
    assert answer.json() == {"name": "replica-a", "host": "localhost:1"}


def test_request_without_a_token_reaches_no_replica(stand):
    answer = stand.http.post("/a2a/", json=SEND, headers={"Authorization": ""})
    assert answer.status_code == 401
    assert "asked" not in stand.a.output + stand.b.output


def test_port_that_is_taken_is_said_in_one_line(front):
    with front.start() as second:
        assert second.wait() == 2
    assert second.output == (
        f"CommandError: port {front.port} is taken; choose another with --port"
    )


def test_router_stops_cleanly_with_a_stream_open(stand):
    other = Front()
    other.issuer, other.ports = stand.front.issuer, stand.front.ports
    with other.start() as router:
        stand.http.base_url = address_of(router)
        with stand.stream() as answer:
            next(answer.iter_text())
            router.send(signal.SIGTERM)
            assert router.wait() == 0
