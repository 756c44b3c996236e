"""What a request names: a run, a place, switches; and where it is sent on to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from orchestrator import snapshots, visitors
from orchestrator.config import Configuration
from orchestrator.errors import RunUnknown
from orchestrator.fold import fold
from orchestrator.page import LAST_STEP, Place, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from orchestrator.models import Run
    from orchestrator.snapshots import Snapshot


async def load(run_id: str) -> Snapshot:
    """Return the run an address names.

    Raises:
        Http404: there is none.
    """
    try:
        return await snapshots.shared().fresh(run_id)
    except RunUnknown:
        raise Http404 from None


def owns(request: HttpRequest, run: Run) -> bool:
    """Tell whether the reader may change the run."""
    return visitors.owns(visitors.known(request), run)


async def owned(request: HttpRequest, run_id: str) -> Run:
    """Return the run for somebody who may change it.

    Raises:
        Http404: there is none.
        PermissionDenied: another browser started it.
    """
    run = (await load(run_id)).run
    if not owns(request, run):
        raise PermissionDenied
    return run


def number(values: Mapping[str, str], name: str) -> int | None:
    """Return an optional whole number of a query or a form.

    Raises:
        BadRequest: it is something else.
    """
    text = values.get(name) or None
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise BadRequest(name)
    return int(text)


def configuration(values: dict[str, str]) -> Configuration:
    """Return the switches a form names; the others keep their default.

    Raises:
        BadRequest: a switch has no such position.
    """
    try:
        return Configuration.parse(values)
    except ValueError:
        raise BadRequest from None


def place(seen: Snapshot, step: int, event: int | None) -> Place:
    """Return the place of an address, in the step its event belongs to.

    Raises:
        Http404: there is no such step.
    """
    if step > LAST_STEP:
        raise Http404
    return canonical(Place(step, event), fold(seen.events, seen.run.configuration))


def address(run_id: str, place: Place) -> str:
    """Return the address of a place."""
    walk = reverse("orchestrator:walk", args=[run_id, place.step])
    return walk if place.event is None else f"{walk}?event={place.event}"


def by_htmx(request: HttpRequest) -> bool:
    """Tell whether htmx asks, which wants parts and not a page."""
    return bool(request.htmx)  # type: ignore[attr-defined]


def sent_on(request: HttpRequest, target: str) -> HttpResponse:
    """Load another page, also when htmx asked."""
    if by_htmx(request):
        return HttpResponseClientRedirect(target)
    return HttpResponseRedirect(target)
