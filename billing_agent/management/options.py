"""Options that Django gives every command: they work, ``--help`` lists our own."""

from __future__ import annotations

UNLISTED = {
    "--force-color",
    "--no-color",
    "--pythonpath",
    "--settings",
    "--traceback",
    "--verbosity",
    "--version",
}
