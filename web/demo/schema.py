"""Whether a database is ready for the parts, asked without starting one."""

from __future__ import annotations

import psycopg
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from billing_agent.models import LineItem
from web.demo.keeper import DemoError

CONNECT_SECONDS = 5
_COLUMNS = (
    "SELECT table_name, column_name FROM information_schema.columns"
    " WHERE table_schema = ANY (current_schemas(false))"
)


class SchemaDiffers(DemoError):
    """The tables were made by another version, which no migration leads on from."""

    def __init__(self) -> None:
        super().__init__(
            "the database was made by another version of this program: start with an"
            " empty one (remove postgres in VAR_DIR, or name another DATABASE_URL)"
        )


class DatabaseUnreachable(DemoError):
    """Nothing that speaks PostgreSQL answers at ``DATABASE_URL``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"DATABASE_URL cannot be reached: {reason}")


def is_prepared(url: str) -> bool:
    """Return whether every migration is applied and the invoices are there.

    Raises:
        DatabaseUnreachable: no connection within five seconds.
        SchemaDiffers: the migrations are applied and columns are missing all the same.
    """
    try:
        connection = psycopg.connect(url, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error as error:
        raise DatabaseUnreachable(_one_line(error)) from None
    with connection:
        try:
            rows = connection.execute("SELECT app, name FROM django_migrations")
            if not _known() <= set(rows):
                return False
        except psycopg.errors.UndefinedTable:
            return False
        if not _columns() <= set(connection.execute(_COLUMNS)):
            raise SchemaDiffers
        return _has_rows(connection)


def _known() -> set[tuple[str, ...]]:
    return set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def _columns() -> set[tuple[str | None, ...]]:
    return {
        (model._meta.db_table, field.column)
        for model in apps.get_models()
        if model._meta.managed
        for field in model._meta.local_concrete_fields
    }


def _has_rows(connection: psycopg.Connection) -> bool:
    table = sql.Identifier(LineItem._meta.db_table)
    query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(table)
    row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])


def _one_line(error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
