"""Who may open a socket: a page of the very address it is opened at."""

from __future__ import annotations

import pytest
from channels.testing import WebsocketCommunicator

from web.origin import SameOriginSockets

HOST = b"demo.example:8000"
SAME = b"http://demo.example:8000"


@pytest.fixture(autouse=True)
def served(settings):
    settings.ALLOWED_HOSTS = ["demo.example"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://workshop.example"]


async def accepting(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    await receive()


async def opens(*headers):
    socket = WebsocketCommunicator(SameOriginSockets(accepting), "/ws/", headers)
    connected, _ = await socket.connect()
    await socket.disconnect()
    return connected


@pytest.mark.parametrize(
    "origin",
    [
        SAME,
        b"https://demo.example:8000",
        b"HTTP://Demo.Example:8000",
        b"https://workshop.example",
    ],
)
async def test_page_of_this_address_may_open_a_socket(origin):
    assert await opens((b"host", HOST), (b"origin", origin))


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"http://demo.example",
        b"http://demo.example:9000",
        b"http://demo.example:8000.evil.example",
        b"http://evil.example/demo.example:8000",
        b"null",
        b"file://",
        b"",
        b"\xff",
    ],
)
async def test_page_of_another_address_may_not(origin):
    assert not await opens((b"host", HOST), (b"origin", origin))


async def test_socket_without_an_origin_is_no_page():
    assert not await opens((b"host", HOST))


async def test_two_origins_are_one_too_many():
    assert not await opens((b"host", HOST), (b"origin", SAME), (b"origin", SAME))


@pytest.mark.parametrize("host", [b"evil.example", b"evil.example:8000", b""])
async def test_name_of_another_host_does_not_help(host):
    """A name that resolves to this machine makes a page elsewhere the same origin."""
    assert not await opens((b"host", host), (b"origin", b"http://" + host))
