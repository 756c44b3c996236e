"""The billing team's side: an ADK agent served over A2A on several replicas."""

from __future__ import annotations

import os

# a2a-sdk wraps every step of a request in a span, at a tenth of its cost, whether or
# not anybody collects them. Who does sets this to true.
os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
# ADK's part converters work; their warning would appear once in every process.
os.environ.setdefault("ADK_SUPPRESS_A2A_EXPERIMENTAL_FEATURE_WARNINGS", "1")
