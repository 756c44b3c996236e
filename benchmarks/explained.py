"""Bars known to be missed, each with where the time goes; other misses fail the run."""

from __future__ import annotations

EXPLAINED: dict[str, str] = {}
"""Reasons by the name of the row."""
