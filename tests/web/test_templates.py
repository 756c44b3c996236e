"""Every template of the project compiles."""

from __future__ import annotations

import pytest
from django.template.loader import get_template

from web.environment import BASE_DIR

FOLDERS = [*BASE_DIR.glob("*/templates")]
NAMES = sorted(
    str(path.relative_to(folder))
    for folder in FOLDERS
    for path in folder.rglob("*")
    if path.is_file()
)


@pytest.mark.parametrize("name", NAMES)
def test_template_compiles(name):
    assert get_template(name)
