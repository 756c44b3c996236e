"""Whether a database is ready for the parts, told without starting one."""

from __future__ import annotations

import psycopg
import pytest

from billing_agent.seed import seed
from orchestrator import deployment
from web.demo.schema import DatabaseUnreachable, SchemaDiffers, is_prepared

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def url():
    return deployment.current().database


@pytest.fixture
def older(url):
    """The tables as a version before made them: one column has another name."""
    rename = "ALTER TABLE orchestrator_run RENAME {} TO {}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(rename.format("renewed_at", "lease"))
        yield
        connection.execute(rename.format("lease", "renewed_at"))


def test_a_database_is_ready_once_it_is_seeded(url):
    assert not is_prepared(url)
    seed()
    assert is_prepared(url)


def test_a_database_without_a_table_is_not_ready(url):
    with psycopg.connect(url, autocommit=True) as connection:
        name = f"{connection.info.dbname}_empty"
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            empty = psycopg.conninfo.make_conninfo(url, dbname=name)
            assert not is_prepared(empty)
        finally:
            connection.execute(f'DROP DATABASE "{name}"')


@pytest.mark.usefixtures("older")
def test_tables_of_another_version_are_told_from_tables_to_be_made(url):
    with pytest.raises(SchemaDiffers, match="start with an empty one"):
        is_prepared(url)


def test_nobody_at_the_address_is_an_error():
    with pytest.raises(DatabaseUnreachable):
        is_prepared("postgresql://127.0.0.1:1/nothing")
