"""The record by which other commands find the demo that is running."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

# Process ids are used again; a process this many seconds apart is another one.
SAME_PROCESS_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """A demo: its supervisor's process, the settings its parts were given.

    ``ready`` turns true once every part answers; ``parts`` are their process ids.
    """

    pid: int
    started: float
    ready: bool
    environment: dict[str, str]
    parts: dict[str, int]

    @property
    def web_url(self) -> str:
        """Where the pages are."""
        return self.environment["WEB_URL"]

    @property
    def router_url(self) -> str:
        """Where A2A requests go."""
        return self.environment["PUBLIC_URL"]

    @property
    def replicas(self) -> dict[str, str]:
        """Names and addresses of the replicas, in routing order."""
        pairs = self.environment["REPLICAS"].split(",")
        return dict(pair.split("=", 1) for pair in pairs)

    @property
    def var_dir(self) -> Path:
        """Its folder; ``log`` in it holds what the parts print."""
        return Path(self.environment["VAR_DIR"])

    def pid_of(self, part: str) -> int:
        """Return the process id a part has now; it changes at each start.

        Raises:
            KeyError: there is no part of this name, or no demo any more.
        """
        now = find_running(self.var_dir)
        return (now.parts if now else {})[part]

    @property
    def alive(self) -> bool:
        """Whether the supervisor's process still runs."""
        import psutil

        try:
            started = psutil.Process(self.pid).create_time()
        except psutil.Error:
            return False
        return bool(abs(started - self.started) < SAME_PROCESS_SECONDS)


def find_running(var_dir: Path | None = None) -> RunningDemo | None:
    """Return the demo that runs, or is starting, on ``var_dir`` (default: ours)."""
    from web.environment import var_dir as default

    try:
        record = _path(var_dir or default()).read_text(encoding="utf-8")
        demo = RunningDemo(**json.loads(record))
    except (OSError, ValueError, TypeError):
        return None
    return demo if demo.alive else None


def write_record(demo: RunningDemo) -> None:
    """Make a demo findable; readers see the old record or the new, never half."""
    draft = demo.var_dir / ".demo.json"
    # It may hold a database password.
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(demo), indent=1), encoding="utf-8")
    draft.replace(_path(demo.var_dir))


def remove_record(var_dir: Path) -> None:
    """Say that no demo runs any more."""
    with contextlib.suppress(FileNotFoundError):
        _path(var_dir).unlink()


def _path(var_dir: Path) -> Path:
    return var_dir / "demo.json"
