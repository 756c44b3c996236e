"""``serve`` in a real process: its start, its drain, its end."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import sys

import pytest
from daphne.server import Server
from websockets.sync.client import connect

from billing_agent.serving import PortTaken, check_port
from tests.child import Child
from tests.ports import free_port

pytestmark = pytest.mark.processes


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def served(port):
    children = []

    def start(*options):
        child = Child("-m", "tests.web.served", str(port), *options)
        children.append(child)
        child.expect(f"ready http://127.0.0.1:{port}/")
        return child

    yield start
    for child in children:
        child.__exit__()


def get(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    return connection, connection.getresponse()


def body(port, path="/"):
    connection, response = get(port, path)
    text = response.read()
    connection.close()
    return text


def test_startup_runs_before_the_port_is_open(served):
    child = served()
    assert child.expect("startup") == "startup, port closed"


def test_taken_port_is_named_before_anything_starts(served, port):
    served()
    with Child("-m", "tests.web.served", str(port)) as second:
        assert second.wait() == 1
        assert second.output == f"port {port} is taken; choose another with --port"


def test_port_in_use_by_a_listener_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {taken} is taken.*--port-base"):
            check_port(taken, option="--port-base")


@pytest.mark.skipif(sys.platform != "linux", reason="others cap the queue lower")
def test_a_crowd_waits_to_be_accepted(served, port):
    child = served()
    child.send(signal.SIGSTOP)
    with contextlib.ExitStack() as crowd:
        crowd.callback(child.send, signal.SIGCONT)
        for _ in range(500):
            waiting = socket.create_connection(("127.0.0.1", port), timeout=10)
            crowd.enter_context(waiting)


def test_port_just_released_is_free(port):
    with (
        socket.create_server(("127.0.0.1", port)) as listener,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        accepted, _ = listener.accept()
        accepted.close()
        client.recv(1)
    check_port(port)


def test_requests_are_answered(served, port):
    served()
    assert body(port) == b"hi"


def test_sockets_are_answered(served, port):
    served()
    with connect(f"ws://127.0.0.1:{port}/") as client:
        client.send("hello")
        assert client.recv(timeout=10) == "HELLO"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains_while_requests_are_answered_then_exits_0(served, port, number):
    child = served()
    child.send(number)
    child.expect("draining")
    assert body(port, "/release") == b"hi"
    assert child.wait() == 0
    assert child.output.endswith("drained\nended")


def test_second_signal_cuts_the_drain_short(served):
    child = served()
    child.send(signal.SIGTERM)
    child.expect("draining")
    child.send(signal.SIGTERM)
    assert child.wait() == 0
    assert "drained" not in child.output


def test_broken_drain_ends_the_process_with_its_error(served):
    child = served("--break")
    child.send(signal.SIGTERM)
    assert child.wait() == 1
    assert "RuntimeError: the drain broke" in child.output


def test_open_stream_is_cancelled_after_the_drain(served, port):
    child = served("--at-once")
    connection, response = get(port, "/stream")
    assert response.read(2) == b"hi"
    child.send(signal.SIGTERM)
    assert child.wait() == 0
    assert child.output.endswith("drained\ncancelled /stream\nended")
    response.close()
    connection.close()


def test_half_a_request_does_not_keep_a_stream_from_being_cancelled(served, port):
    child = served("--at-once")
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"GET / HTTP/1.1\r\n")
        connection, response = get(port, "/stream")
        response.read(2)
        child.send(signal.SIGTERM)
        assert child.wait() == 0
    assert "cancelled /stream" in child.output
    response.close()
    connection.close()


def test_daphne_itself_fails_over_half_a_request():
    """Pins why ``DrainingServer`` cancels by itself."""
    server = Server(None, endpoints=["tcp:0"])
    server.connections = {"half a request": {"connected": 0}}
    with pytest.raises(KeyError):
        server.kill_all_applications()


def test_handler_is_cancelled_once_its_client_has_been_gone_for_a_while(served, port):
    child = served()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /abandoned HTTP/1.1\r\nHost: x\r\n\r\n")
        child.expect("begun")
    child.expect("cancelled /abandoned")
