"""Secrets and keys made at first use and kept in files only the owner can read."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def kept(path: Path, make: Callable[[], str]) -> str:
    """Return the text kept at ``path``, made by ``make`` when there is none yet.

    Several processes and threads may ask at once: all get the text of the first.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(make())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text()
