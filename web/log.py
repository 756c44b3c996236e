"""How a line of the log is written: what a caller sent cannot begin one of its own."""

from __future__ import annotations

import logging

_CONTROL = [*range(9), *range(11, 32), *range(0x7F, 0xA0)]  # all but the tab
_ESCAPED = {code: f"\\x{code:02x}" for code in _CONTROL} | {
    ord("\n"): "\\n",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}

# a2a-sdk 1.3 warns at the end of every run of a task whose queue it has closed.
_EXPECTED = ("Dispatcher task is not running", "Queue was closed during enqueuing")


class News(logging.Filter):
    """Leaves out what says only that a run has ended as it should."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record says more."""
        return not str(record.msg).startswith(_EXPECTED)


class OneLine(logging.Formatter):
    """Writes a record's message on one line; a traceback follows on its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        return super().formatMessage(record).translate(_ESCAPED)
