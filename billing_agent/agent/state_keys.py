"""Every key the agent keeps in ADK's shared state scopes, and what it means."""

from __future__ import annotations

from typing import NamedTuple


class StateKey(NamedTuple):
    """One key under ``user:`` or ``app:``; a test refuses undeclared ones."""

    key: str
    meaning: str


PREFERENCES = "user:preferences"

STATE_KEYS = (
    StateKey(
        PREFERENCES,
        "list of texts: what the caller asked to be remembered, oldest first; kept"
        " per conversation, because the ADK user is A2A_USER_<context id>",
    ),
)
