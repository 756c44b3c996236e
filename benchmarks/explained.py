"""Bars known to be missed, each with where the time goes; a miss not here is a failure."""

from __future__ import annotations

EXPLAINED: dict[str, str] = {}
"""Reasons by the name of the row."""
