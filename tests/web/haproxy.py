"""HAProxy as a part of the demo: ``haproxy.py PROGRAM CONFIGURATION``."""

from __future__ import annotations

import signal
import subprocess
import sys

if __name__ == "__main__":
    program, configuration = sys.argv[1:]
    with subprocess.Popen([program, "-db", "-f", configuration]) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        sys.exit(process.wait())
