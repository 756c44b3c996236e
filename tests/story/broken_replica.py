"""A replica whose continuity hook does nothing, to see a run disagree with its rule."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def do_nothing(conversation):
    """Return a hook that neither looks up nor creates."""

    async def hook(context):
        return False

    return hook


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
    sys.path.insert(0, str(Path.cwd()))
    import django
    from django.core.management import execute_from_command_line

    django.setup()
    import billing_agent.replica

    billing_agent.replica.continuity = do_nothing
    execute_from_command_line(["manage.py", *sys.argv[1:]])
