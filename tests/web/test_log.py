"""A caller cannot write a line of the log."""

from __future__ import annotations

import logging
import logging.config
import secrets

import pytest

from tests.billing_agent.contract.watch import until
from tests.security.bindings import RPC, ask
from web.log import News, OneLine

FORGED = "1\n2026-11-30 12:00:00 ERROR billing_agent: all tenants deleted"


def written(message, *args, error=None):
    record = logging.LogRecord("who", logging.ERROR, "", 1, message, args, error)
    return OneLine("{levelname} {message}", style="{").format(record)


def test_line_stays_one_line():
    assert written("id %s", "a\r\nb\x1b[31m\u2028c\x85d\te") == (
        "ERROR id a\\x0d\\nb\\x1b[31m\\u2028c\\x85d\te"
    )


def test_other_text_is_written_as_it_is():
    assert written("Zürich %s", "請求書 😀") == "ERROR Zürich 請求書 😀"


def test_traceback_follows_on_its_own_lines():
    try:
        raise ValueError("why")
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    first, second, *_, last = written("broke\n%s", 1, error=caught).splitlines()
    assert first == "ERROR broke\\n1"
    assert second == "Traceback (most recent call last):"
    assert last == "ValueError: why"


def test_settings_write_the_log_so(settings):
    formatter = settings.LOGGING["formatters"]["line"]
    made = logging.config.DictConfigurator({}).configure_formatter(dict(formatter))
    assert isinstance(made, OneLine)


@pytest.mark.processes
async def test_line_forged_in_an_id_is_no_line_of_the_log(demo, make_peer):
    mark = secrets.token_hex(4)
    peer = await make_peer("replica-a")
    call = {"jsonrpc": "1.0", "id": f"{mark} {FORGED}", "method": "GetTask"}
    answer = await peer.http.post("/a2a/", json=call)
    assert answer.json()["error"]["code"] == -32600
    await ask(peer.http, RPC, "SubscribeToTask", {"id": f"{mark} {FORGED}"})
    log = demo.var_dir / "log" / "replica-a.log"

    async def is_logged():
        return mark in log.read_text()

    await until(is_logged)
    lines = log.read_text().splitlines()
    assert not any(line.startswith(FORGED.partition("\n")[2]) for line in lines)


def test_what_every_run_ends_with_is_no_news():
    expected = logging.LogRecord(
        "a2a",
        logging.WARNING,
        "",
        0,
        "Dispatcher task is not running. Waiting.",
        (),
        None,
    )
    other = logging.LogRecord(
        "a2a", logging.WARNING, "", 0, "Evicting event queue sink %r", ("s",), None
    )

    assert not News().filter(expected)
    assert News().filter(other)
