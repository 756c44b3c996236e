"""Bars known to be missed, each with where the time goes; other misses fail the run."""

from __future__ import annotations

_ALONE = (
    "one request at a time waits for eighteen statements, most of them one after the"
    " other, and thirteen of them are commits that must not be lost; at sixteen they"
    " overlap"
)

EXPLAINED: dict[str, str] = {
    "throughput-shared-1": _ALONE,
    "throughput-memory-1": _ALONE,
}
"""Reasons by the name of the row."""
