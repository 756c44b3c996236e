"""Static files: hashed names once collected, their own names before."""

from __future__ import annotations

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage

from web.static_files import StaticFilesMiddleware, collect_when_changed

NAME = "pages/one.css"


@pytest.fixture
def source(settings, tmp_path):
    file = tmp_path / "source" / NAME
    file.parent.mkdir(parents=True)
    file.write_text("p { color: red }")
    settings.STATICFILES_DIRS = [tmp_path / "source"]
    settings.STATIC_ROOT = tmp_path / "static"
    return file


@pytest.fixture
def get(rf):
    def answer(address, **headers):
        middleware = StaticFilesMiddleware(lambda request: None)
        return middleware(rf.get(address, headers=headers))

    return answer


def test_uncollected_file_goes_by_its_own_name(source, get):
    assert staticfiles_storage.url(NAME) == f"/static/{NAME}"
    assert get(f"/static/{NAME}").content == source.read_bytes()


def test_collected_file_goes_by_a_hashed_name_kept_for_ever(source, get):
    collect_when_changed()
    address = staticfiles_storage.url(NAME)
    assert address != f"/static/{NAME}"
    answer = get(address)
    assert answer.content == source.read_bytes()
    assert "immutable" in answer["Cache-Control"]


def test_collecting_happens_once_until_a_file_changes(source):
    assert collect_when_changed()
    assert not collect_when_changed()
    source.write_text("p { color: green }")
    assert collect_when_changed()


def test_known_file_is_not_sent_again(source, get):
    tag = get(f"/static/{NAME}")["ETag"]
    again = get(f"/static/{NAME}", if_none_match=tag)
    assert (again.status_code, again.content) == (304, b"")


def test_other_addresses_are_passed_on(source, get):
    assert get("/static/pages/two.css") is None
