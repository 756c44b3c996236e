"""Everything an outsider heard, and the search for what nobody should have."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

# What tells of an exception, whatever its text.
TRACES = (
    "Traceback (most recent call last)",
    'File "/',
    "psycopg",
    "RuntimeError: ",
    "nowhere",
    "LINE 1",
    "SELECT ",
)


@dataclass(frozen=True)
class Canaries:
    """What is planted: texts for the log alone, and secrets for not even that."""

    mark: str = field(default_factory=lambda: secrets.token_hex(6))

    @property
    def exception(self) -> str:
        """Part of every exception's text."""
        return f"canary-exception-{self.mark}"

    @property
    def folder(self) -> str:
        """The name of ``VAR_DIR``, so part of every path in it."""
        return f"canary-path-{self.mark}"

    @property
    def database(self) -> str:
        """The name of the database."""
        return f"canary_dsn_{self.mark}"

    @property
    def password(self) -> str:
        """The password in ``DATABASE_URL``."""
        return f"canary-password-{self.mark}"

    @property
    def bearer(self) -> str:
        """A token that is none."""
        return f"canary-token-{self.mark}"

    @property
    def visible(self) -> str:
        """What a caller says, and everybody of its scope may see: the control."""
        return f"visible-{self.mark}"

    def for_the_log(self) -> list[str]:
        """Return what may be in the log and nowhere else."""
        return [self.exception, self.folder, self.database, self.password]

    def for_nobody(self, folder: Path) -> list[str]:
        """Return every secret there is: tokens, their signatures, keys."""
        issued = (folder / "issued-tokens").read_text().split()
        kept = ("secret-key", "client-orchestrator", "client-workshop")
        private = re.search(r'"d": "([^"]+)"', (folder / "issuer-key.json").read_text())
        return [
            self.bearer,
            *issued,
            *(token.rpartition(".")[2] for token in issued),
            *((folder / name).read_text().strip() for name in kept),
            private[1],
        ]


class Heard:
    """Texts by where they were heard: answers, frames, pages, rows."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def hear(self, where: str, text: Any) -> None:
        """Keep a text; an HTTP answer with its headers."""
        if hasattr(text, "headers"):
            head = "\n".join(f"{k}: {v}" for k, v in text.headers.items())
            text = f"{head}\n\n{text.text}"
        self.texts.append((where, str(text)))

    def holding(self, needle: str, beginning: str = "") -> list[str]:
        """Return where a text was heard, at places that begin so."""
        return [
            where
            for where, text in self.texts
            if needle in text and where.startswith(beginning)
        ]

    def leaks(self, needles: list[str]) -> list[str]:
        """Return one line for every needle at every place it was heard at."""
        return [
            f"{where}: {needle} in ...{text[max(0, at - 80) : at + 80]}..."
            for where, text in self.texts
            for needle in needles
            if (at := text.find(needle)) >= 0
        ]


def new_database(server: str, canaries: Canaries) -> str:
    """Create a database with a telling name; return its address with a password."""
    with psycopg.connect(server, autocommit=True) as connection:
        name = sql.Identifier(canaries.database)
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        info = connection.info
        host, user = quote(info.host, safe=""), info.user
        port = info.port
    password = quote(canaries.password)
    return (
        f"postgresql://{user}:{password}@/{canaries.database}?host={host}&port={port}"
    )


def open_database(server: str, canaries: Canaries, *, is_open: bool) -> None:
    """Let nobody into the database any more, or everybody again."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
                sql.Identifier(canaries.database), sql.Literal(is_open)
            )
        )
        if not is_open:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s",
                [canaries.database],
            )


def drop_database(server: str, canaries: Canaries) -> None:
    """Remove the database and whoever is still connected to it."""
    with psycopg.connect(server, autocommit=True) as connection:
        name = sql.Identifier(canaries.database)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def hear_tables(heard: Heard, database: str) -> None:
    """Hear every row of every table; bytes as the text that is in them."""
    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public'"
        ).fetchall()
        for (table,) in tables:
            query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))
            for row in connection.execute(query):
                cells = (
                    cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
                    for cell in row
                )
                heard.hear(f"table {table}", " | ".join(map(str, cells)))
