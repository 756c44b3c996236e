#!/usr/bin/env python
"""Django's command line for the demo: see `manage.py help`."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run a command; settings that cannot be used are one line and exit 2."""
    # Most of a start is imports, and they leave no garbage to look for.
    gc.set_threshold(20_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
