"""Static files under Daphne: hashed names, kept for ever, no step for newcomers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

if TYPE_CHECKING:
    from django.http import HttpRequest


class HashedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Whitenoise's manifest storage that serves what was not collected by its name.

    Only the web process collects (``collect_when_changed``); tests and commands
    that render a page need not.
    """

    manifest_strict = False

    def stored_name(self, name: str) -> str:
        """Return the hashed name when there is one."""
        try:
            return str(super().stored_name(name))
        except ValueError:
            return name


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Whitenoise answering with whole bodies: ASGI cannot stream a plain file."""

    def add_files(self, root: str | Path, prefix: str | None = None) -> None:
        """Take the files of a folder, which only the web process has collected."""
        if Path(root).is_dir():
            super().add_files(root, prefix)

    @staticmethod
    def serve(static_file: object, request: HttpRequest) -> HttpResponse:
        """Answer with one static file."""
        found = static_file.get_response(request.method, request.META)  # type: ignore[attr-defined]
        body = b""
        if found.file is not None:
            with found.file as opened:
                body = opened.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for name, value in found.headers:
            response[name] = value
        return response


def collect_when_changed() -> bool:
    """Collect the static files when one of them changed; return whether it did."""
    stamp = Path(settings.STATIC_ROOT) / ".fingerprint"
    fingerprint = _fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(fingerprint)
    return True


def _fingerprint() -> str:
    """Return a digest of the names, sizes and times of every static file."""
    digest = hashlib.sha256()
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
