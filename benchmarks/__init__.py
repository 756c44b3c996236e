"""Measurements against the bars of the project, each beside its peer in the same run.

Every module with a ``measure`` can be run alone: ``python -m benchmarks.cancel``.
"""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
django.setup()
