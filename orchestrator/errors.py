"""Errors of the orchestrator; ``reason`` is the id of a sentence that is safe to show.

What else an error knows is on its attributes and belongs in the log.
"""

from __future__ import annotations

from orchestrator.sentences import Phrase, sentence


class OrchestratorError(Exception):
    """Base of the orchestrator's errors."""

    reason = "failed.unexpected"


class RunUnknown(OrchestratorError):
    """There is no run of this id (any more)."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run {run_id}")
        self.run_id = run_id


class AgentUnreachable(OrchestratorError):
    """No connection to the billing agent, or it was lost before the turn ended."""

    reason = "failed.unreachable"


class AgentSilent(OrchestratorError):
    """The billing agent let a time limit pass without a word."""

    reason = "failed.silent"


class AgentRefused(OrchestratorError):
    """The billing agent answered with an error instead of a task."""

    reason = "failed.refused"


class StreamBroken(OrchestratorError):
    """The stream ended, or was unreadable, before the task came to rest."""

    reason = "failed.broken-off"


class TaskFailed(OrchestratorError):
    """The task ended in a state that is neither an answer nor a question."""

    reason = "failed.agent"

    def __init__(self, state: str, text: str) -> None:
        super().__init__(f"{state}: {text}")
        self.state = state
        self.text = text


class TokenUnavailable(OrchestratorError):
    """The issuer gave no access token."""

    reason = "failed.token"


class StepFailed(OrchestratorError):
    """A turn could not be played; recorded as such, and may be sent again.

    Args:
        run_id: the run it belongs to.
        turn: which turn.
        reason: the id of the sentence to show.
        error_id: what the log line carries, to be quoted.
    """

    def __init__(self, run_id: str, turn: int, reason: str, error_id: str) -> None:
        super().__init__(f"{sentence(Phrase(reason))} (error id {error_id})")
        self.run_id = run_id
        self.turn = turn
        self.reason = reason
        self.error_id = error_id
