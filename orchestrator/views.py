"""The pages: read a run, show it from a place, ask for its next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from orchestrator import health, parts, runs, sending, snapshots, visitors
from orchestrator.config import Configuration
from orchestrator.controls import KINDS, LABELS, WORDS
from orchestrator.errors import RunUnknown
from orchestrator.fold import fold
from orchestrator.page import (
    LAST_STEP,
    STEP_OF_TURN,
    Move,
    Place,
    canonical,
    next_event,
    view,
)
from orchestrator.shown import footer
from orchestrator.story import TURNS
from orchestrator.texts import TEXTS
from orchestrator.verdict import verdict

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django_htmx.middleware import HtmxDetails

    from orchestrator.models import Run
    from orchestrator.snapshots import Snapshot

RUNS_LISTED = 8
THEMES = ("light", "dark")
YEAR = 365 * 24 * 3600


async def _load(run_id: str) -> Snapshot:
    try:
        return await snapshots.shared().fresh(run_id)
    except RunUnknown:
        raise Http404 from None


async def _owned(request: HttpRequest, run_id: str) -> Run:
    """Return the run for somebody who may change it."""
    run = (await _load(run_id)).run
    if not visitors.owns(request.session.session_key, run):
        raise PermissionDenied
    return run


def _htmx(request: HttpRequest) -> HtmxDetails:
    return request.htmx  # type: ignore[attr-defined,no-any-return]


def _number(values: dict[str, str], name: str) -> int | None:
    """Read an optional whole number of a query or form."""
    text = values.get(name) or None
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise BadRequest(name)
    return int(text)


def _address(run_id: str, place: Place) -> str:
    address = reverse("orchestrator:walk", args=[run_id, place.step])
    return address if place.event is None else f"{address}?event={place.event}"


def _to_page(request: HttpRequest, address: str) -> HttpResponse:
    """Send the browser to another page, also when htmx asked."""
    if _htmx(request):
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    """Show what this is, the button that starts it, and the runs there are."""
    newest = await runs.newest(RUNS_LISTED)
    listed = [
        {
            "id": run.id,
            "words": [WORDS[word] for word in run.configuration.as_dict().values()],
            "turns": run.turns_sent,
            "started": run.created_at,
        }
        for run in newest
    ]
    shown = {"runs": listed, **footer(await health.soon())}
    return render(request, "orchestrator/index.html", shown)


@require_POST
async def theme(request: HttpRequest) -> HttpResponse:
    """Remember the reader's theme and go back to where they were."""
    back = request.POST.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = reverse("orchestrator:index")
    response = HttpResponseRedirect(back)
    chosen = request.POST.get("theme")
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax")
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response


def _configuration(values: dict[str, str]) -> Configuration:
    try:
        return Configuration.parse(values)
    except ValueError:
        raise BadRequest from None


@require_POST
async def start(request: HttpRequest) -> HttpResponse:
    """Start a run of the reader's own; ``send`` also sends its first message."""
    configuration = _configuration(request.POST.dict())
    owner = await visitors.visitor(request)
    run = await runs.create(configuration, started_by=owner)
    if request.POST.get("send"):
        sending.start(run, 1)
        return _to_page(request, _address(run.id, Place(1)))
    return _to_page(request, _address(run.id, Place(0)))


@require_safe
async def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """Lead to the newest event of a run."""
    seen = await _load(run_id)
    newest = fold(seen.events, seen.run.configuration).step
    return HttpResponseRedirect(_address(run_id, Place(newest)))


@require_safe
async def run_json(request: HttpRequest, run_id: str) -> JsonResponse:
    """Return a run for machines: switches, verdict, events."""
    seen = await _load(run_id)
    configuration = seen.run.configuration
    return JsonResponse(
        {
            "run": seen.run.id,
            "config": configuration.as_dict(),
            "twin_of": seen.run.twin_of_id,
            **verdict(seen.events, configuration).as_dict(),
            "events": [
                {
                    "seq": event.seq,
                    "at": event.at.isoformat(),
                    "turn": event.turn,
                    "part": event.part,
                    "kind": event.kind,
                    "data": event.data,
                }
                for event in seen.events
            ],
        }
    )


def _place(request: HttpRequest, seen: Snapshot, step: int) -> Place:
    """Return the place an address names.

    Raises:
        Http404: there is no such step.
    """
    if step > LAST_STEP:
        raise Http404
    asked = Place(step, _number(request.GET.dict(), "event"))
    return canonical(asked, fold(seen.events, seen.run.configuration))


@require_safe
async def walk(request: HttpRequest, run_id: str, step: int) -> HttpResponse:
    """Show a run from a place: a page, or its parts alone to htmx."""
    seen = await _load(run_id)
    place = _place(request, seen, step)
    if place.step != step:
        return HttpResponseRedirect(_address(run_id, place))
    owner = visitors.owns(request.session.session_key, seen.run)
    sight = parts.sight(seen, place, owner, await health.soon())
    fragments = parts.render(seen, sight)
    title = f"{gettext(TEXTS[f'walk.{step}.title'])} · {run_id}"
    if _htmx(request):
        answer = "".join([format_html("<title>{}</title>", title), *fragments.values()])
        return _uncached(HttpResponse(answer))
    shown = {
        "parts": fragments,
        "title": title,
        "run": seen.run,
        "owner": owner,
        "running": sight.claimed is not None,
        "configuration": seen.run.configuration.as_dict(),
        "socket_path": f"/ws/runs/{run_id}/",
        **await _twin(seen.run),
    }
    return _uncached(render(request, "orchestrator/walk.html", shown))


def _uncached(response: HttpResponse) -> HttpResponse:
    """Keep a page and its parts, which share an address, out of every cache."""
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, ["HX-Request"])
    return response


async def _twin(run: Run) -> dict[str, str]:
    """Name the run this one is to be compared with, and the switch they differ in."""
    if not run.twin_of_id:
        return {}
    other = (await runs.get(run.twin_of_id)).configuration.as_dict()
    changed = [
        f"{LABELS[name]} {WORDS[value]}"
        for name, value in run.configuration.as_dict().items()
        if value != other[name]
    ]
    return {"twin_of": run.twin_of_id, "change": ", ".join(changed)}


@require_safe
async def events(request: HttpRequest, run_id: str) -> HttpResponse:
    """Return the parts of a place if there is more than the page has, else 204."""
    seen = await _load(run_id)
    query = request.GET.dict()
    place = _place(request, seen, _number(query, "step") or 0)
    owner = visitors.owns(request.session.session_key, seen.run)
    sight = parts.sight(seen, place, owner, await health.soon())
    known = query.get("have") in {None, parts.mark(seen, sight)}
    if seen.seq <= (_number(query, "after") or 0) and known:
        return _uncached(HttpResponse(status=204))
    return _uncached(HttpResponse("".join(parts.render(seen, sight).values())))


@require_POST
async def next_(request: HttpRequest, run_id: str) -> HttpResponse:
    """Go one event on; past the last, or where ``turn`` is named, send that turn.

    A turn that is on its way or recorded is not sent again: a second click ends
    where the first did.
    """
    run = await _owned(request, run_id)
    form = request.POST.dict()
    turn, event = _number(form, "turn"), _number(form, "event")
    if turn is None:
        move = await _following(run_id, event)
        if move.turn is None:
            return HttpResponseRedirect(_address(run_id, move.place or Place(0)))
        turn = move.turn
    if turn not in TURNS:
        raise BadRequest
    sending.start(run, turn)
    return HttpResponseRedirect(_address(run_id, Place(STEP_OF_TURN[turn])))


async def _following(run_id: str, event: int | None) -> Move:
    """Return the move past an event; past the newest one when none is named."""
    seen = await _load(run_id)
    recorded = fold(seen.events, seen.run.configuration)
    at = recorded.cursor if event is None else event
    place = canonical(Place(0, at), recorded)
    claimed = sending.turn_on_its_way(seen.run)
    move = next_event(view(seen.events, seen.run.configuration, place, claimed))
    return Move(place) if move.rests else move


@require_POST
async def flip(request: HttpRequest, run_id: str) -> HttpResponse:
    """Start a twin of the run with one switch in its other position."""
    run = await _owned(request, run_id)
    named = {name: request.POST[name] for name in KINDS if name in request.POST}
    if len(named) != 1:
        raise BadRequest
    [(name, value)] = named.items()
    chosen = _configuration({**run.configuration.as_dict(), name: value})
    if chosen == run.configuration:
        return _to_page(request, reverse("orchestrator:run", args=[run_id]))
    twin = await runs.create(chosen, twin_of=run.id, started_by=run.started_by)
    return _to_page(request, _address(twin.id, Place(0)))


@require_POST
async def again(request: HttpRequest, run_id: str) -> HttpResponse:
    """Start over: a new run under the same switches."""
    run = await _owned(request, run_id)
    fresh = await runs.create(run.configuration, started_by=run.started_by)
    return _to_page(request, _address(fresh.id, Place(0)))
