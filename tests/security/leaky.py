"""A part of the demo that breaks on request: ``tests/security/leaky.py replica ...``

Runs a command of ``manage.py`` after taking hold of some functions. While the file
``mischief`` under ``VAR_DIR`` names one of ``BREAKS``, that function raises an error
whose text is full of what nobody outside may read. Every token the issuer makes is
written down, so that it can be looked for.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from pathlib import Path
from pkgutil import resolve_name

import django

MISCHIEF = "mischief"
ISSUED = "issued-tokens"
_REPLICA = {
    "tool": "billing_agent.agent.invoices.describe",
    "sql": "billing_agent.agent.invoices.describe",
    "model": "billing_agent.agent.scripted_model.decide",
    "session": "billing_agent.stores.sessions.SessionService.get_session",
    "append": "billing_agent.stores.sessions.SessionService.append_event",
    "audit": "billing_agent.executor.audit.entries_of",
    "task": "billing_agent.stores.tasks.TaskStore.get",
    "save": "billing_agent.stores.tasks.TaskStore.save",
    "list": "billing_agent.stores.tasks.TaskStore.list",
    "builder": "web.demo.switches.SwitchContextBuilder.build",
    "ledger": "web.demo.ledger._held",
}
_ROUTER = {"routing": "billing_agent.router.errand.errand_of"}
_WEB = {
    "page": "orchestrator.views.footer",
    "parts": "orchestrator.parts.render",
    "run": "orchestrator.snapshots.Snapshots.fresh",
    "issuer": "billing_agent.identity.issuer._exists",
}
BREAKS = {"replica": _REPLICA, "router": _ROUTER, "serve_web": _WEB}


def secret_text():
    """Return an error message as the worst libraries write one."""
    return " ".join(
        (
            os.environ["CANARY_EXCEPTION"],
            os.environ["DATABASE_URL"],
            str(Path(os.environ["VAR_DIR"]) / "secret-key"),
        )
    )


def wanted(word):
    """Tell whether this break is asked for now."""
    asked = Path(os.environ["VAR_DIR"]) / MISCHIEF
    return asked.exists() and word in asked.read_text().split()


def misbehave(word):
    if not wanted(word):
        return
    if word == "sql":
        from django.db import connection

        with connection.cursor() as cursor:
            query = f"SELECT '{os.environ['CANARY_EXCEPTION']}' FROM nowhere"  # noqa: S608
            cursor.execute(query)
    raise RuntimeError(secret_text())


def breaking(word, function):
    """Return the function, which raises while its break is asked for."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def broken(*args, **kwargs):
            misbehave(word)
            return await function(*args, **kwargs)
    else:

        @functools.wraps(function)
        def broken(*args, **kwargs):
            misbehave(word)
            return function(*args, **kwargs)

    return broken


def take_hold(command):
    """Replace what breaks in a command's process, wherever it was imported to."""
    for word, path in BREAKS.get(command, {}).items():
        owner, _, name = path.rpartition(".")
        holder = resolve_name(owner)
        function = getattr(holder, name)
        broken = breaking(word, function)
        setattr(holder, name, broken)
        for module in list(sys.modules.values()):
            if getattr(module, name, None) is function:
                setattr(module, name, broken)


def write_tokens_down():
    from billing_agent.identity import issuer

    made = issuer.access_token

    def noted(*args):
        token = made(*args)
        with (Path(os.environ["VAR_DIR"]) / ISSUED).open("a") as file:
            file.write(token + "\n")
        return token

    issuer.access_token = noted


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
    django.setup()
    take_hold(sys.argv[1])
    if sys.argv[1] == "serve_web":
        write_tokens_down()
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
