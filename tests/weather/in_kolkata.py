"""Runs a script of the project with the clock of Kolkata: +05:30."""

from __future__ import annotations

import os
import runpy
import sys
import time

if __name__ == "__main__":
    os.environ["TZ"] = "Asia/Kolkata"
    time.tzset()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
