"""What is sent in a comparison, and the load generator that sends it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.ground import NotMeasured
from benchmarks.load import UNIQUE, Load, Outcome

# One tool call, then the answer; no question.
TEXT = "Show invoice 8812."
ANSWER = "TASK_STATE_COMPLETED"
RPC_PATH = "/a2a/"


def body() -> str:
    """Return a SendMessage that begins a conversation of its own.

    The tenant in its metadata is for the peer, which believes it; ours takes it out
    and writes the verified one.
    """
    message = {
        "messageId": UNIQUE,
        "contextId": UNIQUE,
        "role": "ROLE_USER",
        "parts": [{"text": TEXT}],
    }
    params = {"message": message, "metadata": {"x-verified-tenant": "acme"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    return json.dumps(call)


def headers(token: str = "") -> dict[str, str]:
    """Return the headers of a call, with the token if there is one."""
    always = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    return {**always, "Authorization": f"Bearer {token}"} if token else always


def drive(
    url: str,
    *,
    at_once: int,
    seconds: float,
    path: str = RPC_PATH,
    token: str = "",
) -> Outcome:
    """Send for some seconds from a process of its own and return what came of it.

    Raises:
        NotMeasured: an answer was not what was to be measured, or none came.
    """
    address = urlsplit(url)
    load = Load(
        host=address.hostname or "",
        port=address.port or 80,
        path=path,
        headers=headers(token),
        body=body(),
        expected=ANSWER,
        at_once=at_once,
        seconds=seconds,
        warmup=min(2.0, seconds / 3),
    )
    generator = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("load.py"))],
        input=json.dumps(asdict(load)),
        capture_output=True,
        text=True,
        check=False,
    )
    if generator.returncode:
        raise NotMeasured(generator.stderr.strip().rpartition("\n")[2])
    outcome = Outcome(**json.loads(generator.stdout))
    if not outcome.latencies:
        raise NotMeasured(f"no answer of {url} within {seconds:g} s")
    return outcome
