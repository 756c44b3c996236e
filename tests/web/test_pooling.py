"""Django's share of the database connections, however many ask at once."""

from __future__ import annotations

import asyncio

import httpx
import psycopg
import pytest

from web.pooling import SIZE

pytestmark = pytest.mark.processes

AT_ONCE = 60
CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@pytest.mark.parametrize("part", ["replica-a", "web"])
async def test_login_page_cannot_use_up_the_connections(demo, part):
    base = demo.web_url if part == "web" else demo.replicas[part]
    before = _connections(demo)
    limits = httpx.Limits(max_connections=AT_ONCE)
    # Looking a session up takes a query.
    cookies = {"sessionid": "a" * 32}
    async with httpx.AsyncClient(
        base_url=base, limits=limits, cookies=cookies, timeout=60, trust_env=False
    ) as client:
        asked = [client.get("/admin/login/") for _ in range(3 * AT_ONCE)]
        answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {200}
    assert _connections(demo) <= before + SIZE


def _connections(demo):
    with psycopg.connect(demo.environment["DATABASE_URL"]) as connection:
        ((count,),) = connection.execute(CONNECTIONS).fetchall()
    return count
