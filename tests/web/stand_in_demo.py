"""A demo of stand-in parts as a process: ``stand_in_demo.py PORT_BASE VAR_DIR``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

from tests.web.stand_in import parts_of

if __name__ == "__main__":
    os.environ.pop("DATABASE_URL", None)
    django.setup()
    from web.demo.supervisor import Demo

    base = int(sys.argv[1])
    folder = Path(sys.argv[2])
    demo = Demo(port_base=base, var_dir=folder, parts=parts_of(base), prepare=False)
    demo.run(lambda running: print("ready", running.web_url, flush=True))
    print("stopped")
