"""How a line of the log is written: what a caller sent cannot begin one of its own."""

from __future__ import annotations

import logging

_CONTROL = [*range(9), *range(11, 32), *range(0x7F, 0xA0)]  # all but the tab
_ESCAPED = {code: f"\\x{code:02x}" for code in _CONTROL} | {
    ord("\n"): "\\n",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class OneLine(logging.Formatter):
    """Writes a record's message on one line; a traceback follows on its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        return super().formatMessage(record).translate(_ESCAPED)
