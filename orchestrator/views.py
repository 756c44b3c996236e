"""The pages: read a run, and show it from a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.html import format_html
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from orchestrator import asked, health, parts, runs, snapshots
from orchestrator.config import Toggle
from orchestrator.controls import LABELS, WORDS
from orchestrator.fold import fold
from orchestrator.page import Place
from orchestrator.report import report
from orchestrator.shown import footer, strip
from orchestrator.texts import TEXTS
from orchestrator.verdict import verdict

if TYPE_CHECKING:
    from django.http import HttpRequest

    from orchestrator.config import Configuration
    from orchestrator.models import Run
    from orchestrator.snapshots import Snapshot

RUNS_LISTED = 12


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    """Show what this is, the button that starts it, and the runs there are."""
    newest = await runs.newest(RUNS_LISTED)
    listed = [await _line(run) for run in newest]
    shown = {"runs": listed, **footer(await health.soon())}
    return render(request, "orchestrator/index.html", shown)


async def _line(run: Run) -> dict[str, Any]:
    seen = await snapshots.shared().at_least(run.id, run.last_seq)
    decided = verdict(seen.events, run.configuration)
    return {
        "id": run.id,
        "words": " · ".join(_words(run.configuration)),
        "strip": strip(decided),
        "started": run.created_at,
    }


def _words(configuration: Configuration) -> list[str]:
    """Say each switch in words; on and off need the switch's name."""
    return [
        f"{LABELS[name]} {WORDS[value]}" if value in {*Toggle} else str(WORDS[value])
        for name, value in configuration.as_dict().items()
    ]


@require_safe
async def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """Lead to the newest event of a run."""
    seen = await asked.load(run_id)
    newest = fold(seen.events, seen.run.configuration).step
    return HttpResponseRedirect(asked.address(run_id, Place(newest)))


@require_safe
async def run_json(request: HttpRequest, run_id: str) -> JsonResponse:
    """Return a run for machines: switches, verdict, events."""
    seen = await asked.load(run_id)
    return JsonResponse(
        {
            **report(run_id, seen.run.configuration, seen.events),
            "twin_of": seen.run.twin_of_id,
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


@require_safe
async def walk(request: HttpRequest, run_id: str, step: int) -> HttpResponse:
    """Show a run from a place: a page, or its parts alone to htmx."""
    seen = await asked.load(run_id)
    place = asked.place(seen, step, asked.number(request.GET, "event"))
    if place.step != step:
        return HttpResponseRedirect(asked.address(run_id, place))
    owner = asked.owns(request, seen.run)
    sight = parts.sight(seen, place, owner, await health.soon())
    fragments = parts.render(seen, sight)
    title = f"{gettext(TEXTS[f'walk.{step}.title'])} · {run_id}"
    if asked.by_htmx(request):
        heading = format_html("<title>{}</title>", title)
        return _uncached(HttpResponse("".join([heading, *fragments.values()])))
    shown = {
        "parts": fragments,
        "title": title,
        "run": seen.run,
        "owner": owner,
        "running": sight.claimed is not None,
        "configuration": seen.run.configuration.as_dict(),
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
    """Return the parts of a place; 204 when the page that asks shows them already.

    ``after`` is the newest event the page has, ``have`` the mark of what it shows.
    """
    seen = await asked.load(run_id)
    step = asked.number(request.GET, "step")
    place = asked.place(
        seen, *_standing(seen, step, asked.number(request.GET, "event"))
    )
    owner = asked.owns(request, seen.run)
    sight = parts.sight(seen, place, owner, await health.soon())
    known = request.GET.get("have") in {None, parts.mark(seen, sight)}
    if known and seen.seq <= (asked.number(request.GET, "after") or 0):
        return _uncached(HttpResponse(status=204))
    return _uncached(HttpResponse("".join(parts.render(seen, sight).values())))


def _standing(
    seen: Snapshot, step: int | None, event: int | None
) -> tuple[int, int | None]:
    """Return step and event; the newest step when a page does not say."""
    if step is None:
        step = fold(seen.events, seen.run.configuration).step
    return step, event
