"""What the buttons do: start a run, go on, flip a switch, start over."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from django.core.exceptions import BadRequest
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from orchestrator import asked, runs, sending, visitors
from orchestrator.controls import KINDS
from orchestrator.page import STEP_OF_TURN, Move, Place, next_event, view
from orchestrator.story import TURNS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from django.http import HttpRequest, HttpResponse

    Action = Callable[..., Coroutine[Any, Any, HttpResponse]]

THEMES = ("light", "dark")
YEAR = 365 * 24 * 3600


def posted(action: Action) -> Action:
    """Lead whoever opens a button's address to the run, or to the start page."""

    @wraps(action)
    async def only_posted(request: HttpRequest, **named: str) -> HttpResponse:
        if request.method == "POST":
            return await action(request, **named)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        page = "run" if named else "index"
        return HttpResponseRedirect(reverse(f"orchestrator:{page}", kwargs=named))

    return only_posted


@posted
async def theme(request: HttpRequest) -> HttpResponse:
    """Remember the reader's theme and go back to where they are.

    The Referer tells, not a field of the form: pages move on without being loaded.
    """
    left = urlsplit(request.headers.get("Referer", ""))
    back = urlunsplit(left._replace(scheme="", netloc=""))
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = reverse("orchestrator:index")
    response = HttpResponseRedirect(back)
    chosen = request.POST.get("theme")
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax")
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response


@posted
async def start(request: HttpRequest) -> HttpResponse:
    """Start a run of the reader's own; ``send`` also sends its first message."""
    chosen = asked.configuration(request.POST.dict())
    visitor = visitors.known_or_new(request)
    run = await runs.create(chosen, started_by=visitors.digest(visitor))
    place = Place(0)
    if request.POST.get("send"):
        sending.start(run, 1)
        place = Place(STEP_OF_TURN[1])
    response = asked.sent_on(request, asked.address(run.id, place))
    visitors.remember(response, visitor)
    return response


@posted
async def go_on(request: HttpRequest, run_id: str) -> HttpResponse:
    """Go one event on; past the last, or where ``turn`` is named, send that turn.

    A turn that is on its way or recorded is not sent again: a second click ends
    where the first did.
    """
    run = await asked.owned(request, run_id)
    form = request.POST.dict()
    turn, event = asked.number(form, "turn"), asked.number(form, "event")
    if turn is not None and turn not in TURNS:
        raise BadRequest
    move = Move(turn=turn) if turn else await _following(run_id, event)
    if move.turn:
        sending.start(run, move.turn)
    target = move.after_sending().place or Place(0)
    return HttpResponseRedirect(asked.address(run_id, target))


async def _following(run_id: str, event: int | None) -> Move:
    """Return the move past an event; past the newest one when none is named."""
    seen = await asked.load(run_id)
    place = asked.place(seen, 0, seen.seq if event is None else event)
    claimed = sending.turn_on_its_way(seen.run)
    move = next_event(view(seen.events, seen.run.configuration, place, claimed))
    return Move(place) if move.rests else move


@posted
async def flip(request: HttpRequest, run_id: str) -> HttpResponse:
    """Start a twin of the run with one switch in its other position."""
    run = await asked.owned(request, run_id)
    named = {name: request.POST[name] for name in KINDS if name in request.POST}
    if len(named) != 1:
        raise BadRequest
    chosen = asked.configuration({**run.configuration.as_dict(), **named})
    if chosen == run.configuration:
        return asked.sent_on(request, reverse("orchestrator:run", args=[run_id]))
    twin = await runs.create(chosen, twin_of=run.id, started_by=run.started_by)
    return asked.sent_on(request, asked.address(twin.id, Place(0)))


@posted
async def again(request: HttpRequest, run_id: str) -> HttpResponse:
    """Start over: a new run under the same switches."""
    run = await asked.owned(request, run_id)
    fresh = await runs.create(run.configuration, started_by=run.started_by)
    return asked.sent_on(request, asked.address(fresh.id, Place(0)))
