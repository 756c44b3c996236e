"""Error pages: a sentence, and the id that the log carries; never the exception."""

from __future__ import annotations

import logging
import secrets
import sys
from typing import TYPE_CHECKING

from django.shortcuts import render
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404."""
    return _page(
        request,
        404,
        _("Not found"),
        _("There is nothing at this address, or not any more."),
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    return _page(
        request,
        403,
        _("Not yours to change"),
        _("This run belongs to another browser session: you can read it."),
    )


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that did not come from a page of ours."""
    return _page(
        request,
        403,
        _("The form has expired"),
        _("Load the page again and press the button once more."),
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    return _page(
        request,
        400,
        _("Not understood"),
        _("The request names something that does not exist here."),
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500; the log has the same id, and the rest."""
    error_id = secrets.token_hex(6)
    logger.error(
        "%s failed [error_id=%s]", request.path, error_id, exc_info=sys.exc_info()
    )
    sentence = _("Something went wrong on our side. What was recorded is kept.")
    return _page(request, 500, _("This page failed"), sentence, error_id)


def _page(
    request: HttpRequest, status: int, heading: str, sentence: str, error_id: str = ""
) -> HttpResponse:
    shown = {"heading": heading, "sentence": sentence, "error_id": error_id}
    return render(request, "error.html", shown, status=status)
