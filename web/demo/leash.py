"""Run a script that ends when its parent does: ``-m web.demo.leash SCRIPT [ARG]...``

The parent holds the other end of this process's standard input and never writes.
The pipe closes when the parent asks for an end, exits, crashes or is killed, on
every operating system; the script then gets SIGTERM, and no second chance.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

# Seconds the script gets to end by itself.
GRACE_SECONDS = 4.0


def hold(grace: float = GRACE_SECONDS) -> None:
    """End this process once its standard input closes: asked first, then forced."""
    pipe = os.dup(0)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)

    def wait_for_the_end() -> None:
        while os.read(pipe, 1024):
            pass
        _terminate()
        time.sleep(grace)
        os._exit(1)

    threading.Thread(target=wait_for_the_end, name="leash", daemon=True).start()


def _terminate() -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)
    else:  # the main thread, so that a wait in it is interrupted
        main_thread = threading.main_thread().ident
        signal.pthread_kill(main_thread or 0, signal.SIGTERM)


def main() -> None:
    """Run the script named on the command line as if Python had been given it."""
    hold()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
