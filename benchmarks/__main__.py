"""``python -m benchmarks``: measure everything, print one table."""

from __future__ import annotations

import sys

from benchmarks import (
    browsers,
    cancel,
    pages,
    router,
    startup,
    story,
    subscribe,
    table,
    throughput,
    turn_200,
)

if __name__ == "__main__":
    sys.exit(
        table.run(
            [
                startup.measure,
                story.measure,
                throughput.measure,
                router.measure,
                turn_200.measure,
                cancel.measure,
                subscribe.measure,
                browsers.measure,
                pages.measure,
            ]
        )
    )
