"""The billing team's side: an ADK agent served over A2A on several replicas."""

from __future__ import annotations

import os

# ADK's part converters work; their warning would appear once in every process.
os.environ.setdefault("ADK_SUPPRESS_A2A_EXPERIMENTAL_FEATURE_WARNINGS", "1")
