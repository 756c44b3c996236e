from __future__ import annotations

import sys

from billing_agent.agent.warm_up import warm_up


async def test_the_first_run_after_it_imports_nothing():
    await warm_up()
    before = set(sys.modules)

    await warm_up()

    assert set(sys.modules) == before
