"""Errors of the billing agent; ``refusals`` says how they look from outside."""

from __future__ import annotations

import os


class BillingError(Exception):
    """Base of the billing agent's errors; data is on attributes."""


class TenantMissing(BillingError):
    """A tool ran on an invocation that carries no verified tenant."""

    def __init__(self) -> None:
        super().__init__("no verified tenant on this invocation")


class InvoiceUnknown(BillingError):
    """The tenant has no invoice of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"no invoice {number}")
        self.number = number


class LineUnknown(BillingError):
    """The invoice has no line of this name."""

    def __init__(self, number: int, line: str) -> None:
        super().__init__(f"invoice {number} has no line {line!r}")
        self.number = number
        self.line = line


class NotAnInvoiceNumber(BillingError):
    """A tool was called with something that is no whole number."""

    def __init__(self, value: object) -> None:
        super().__init__(f"an invoice number is a whole number, not {value!r}")
        self.value = value


class NothingBefore(BillingError):
    """The invoice is the tenant's first: there is none to compare it with."""

    def __init__(self, number: int) -> None:
        super().__init__(f"invoice {number} is the first, nothing comes before it")
        self.number = number


class ConversationBusy(BillingError):
    """Another turn of the conversation did not end within the wait."""

    def __init__(self, context_id: str, waited: float) -> None:
        super().__init__(f"conversation {context_id} busy for {waited:g} s")
        self.context_id = context_id
        self.waited = waited


class RequestRefused(BillingError):
    """A request stopped before a task exists; ``status`` and ``code`` say how.

    ``message`` is safe to show to the caller.
    """

    status = 400
    code = -32602

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TokenRefused(RequestRefused):
    """No token, or one that does not verify."""

    status = 401
    code = -32000


class CallerForbidden(RequestRefused):
    """A verified caller that may not do this: no tenant claim, say."""

    status = 403
    code = -32000


def shown_to_callers() -> bool:
    """Return whether ``ADK_DEBUG_ERRORS`` adds exceptions to what a caller reads.

    It is for a machine that nobody else reaches.
    """
    return os.environ.get("ADK_DEBUG_ERRORS", "").lower() in {"1", "true"}
