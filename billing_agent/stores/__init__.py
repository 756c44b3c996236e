"""What both replicas share, kept in PostgreSQL: sessions, tasks, events, turns."""

from __future__ import annotations
