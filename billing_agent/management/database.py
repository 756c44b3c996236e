"""What a command that works on the database needs first."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import OperationalError, connection


def need_database() -> None:
    """Connect, or end the command.

    Raises:
        CommandError: one line, exit 2: there is no database, or it is away.
    """
    try:
        connection.ensure_connection()
    except ImproperlyConfigured:
        message = "no demo runs here, and DATABASE_URL is not set"
        raise CommandError(message, returncode=2) from None
    except OperationalError:
        message = "the database of DATABASE_URL cannot be reached"
        raise CommandError(message, returncode=2) from None
