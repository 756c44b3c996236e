"""What the templates of a walkthrough page read: a run, seen from a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from orchestrator import drawing
from orchestrator.answers import answers
from orchestrator.config import Sessions
from orchestrator.controls import WORDS, buttons, step_links, switches
from orchestrator.health import down
from orchestrator.measure import measure
from orchestrator.narrative import narrative
from orchestrator.page import view
from orchestrator.predict import predict
from orchestrator.scene import HeldStore, part
from orchestrator.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from orchestrator.health import Health
    from orchestrator.page import Page
    from orchestrator.parts import Sight
    from orchestrator.scene import Part
    from orchestrator.snapshots import Snapshot
    from orchestrator.verdict import Verdict


@dataclass(frozen=True, slots=True)
class FooterPart:
    """A part as the footer names it."""

    name: str
    label: str
    drawn: Part
    up: bool
    since: datetime | None

    @property
    def is_down(self) -> bool:
        """Whether it does not answer."""
        return not self.up


def context(snapshot: Snapshot, sight: Sight) -> dict[str, Any]:
    """Return the context of every part's template."""
    run = snapshot.run
    page = view(snapshot.events, run.configuration, sight.place, sight.claimed)
    until_now = snapshot.events[: page.scene.cursor]
    decided = verdict(until_now, run.configuration)
    # The story tells how the run went, not how far the reader has stepped.
    told = verdict(snapshot.events, run.configuration)
    return {
        "run": run,
        "page": page,
        "sight": sight,
        "verdict": decided,
        "strip": strip(decided),
        "answers": answers(page.scene, decided),
        "narrative": narrative(
            page.place.step,
            run.configuration,
            _names(snapshot),
            gettext,
            told.gap,
        ),
        "failure": page.scene.failure,
        "failed_ahead": None if page.scene.failure else page.recorded.failure,
        "ahead": sum(row.step > page.place.step for row in page.recorded.rows),
        "steps": step_links(page),
        "switches": switches(run.configuration),
        "moves": buttons(page, sight.owner),
        "orchestrator": part("orchestrator"),
        "stores": _stores(page),
        "lookup": page.scene.lookups[-1] if page.scene.lookups else None,
        **_topology(page, sight.health),
        **footer(sight.health, run.configuration.sessions),
    }


def strip(decided: Verdict) -> str:
    """Return how the verdict strip looks: open, remembered, forgot or surprise."""
    if decided.as_predicted is None:
        return "open"
    if not decided.as_predicted:
        return "surprise"
    return "remembered" if decided.outcome == "answers" else "forgot"


def _names(snapshot: Snapshot) -> Mapping[str, str]:
    """Name the replicas of both turns: as measured, before that as the rule says."""
    found = measure(snapshot.events)
    rule = predict(snapshot.run.configuration, found.replicas)
    expected = rule.path if rule.moves or not found.path else found.path[:1] * 2
    first, second = (*found.path, *expected[len(found.path) :])[:2]
    return {"context": snapshot.run.context_id, "first": first, "second": second}


def _stores(page: Page) -> tuple[HeldStore, ...]:
    """Return the stores as read; before the first reading, those there are."""
    if page.scene.ledger is not None:
        return page.scene.ledger
    if page.scene.configuration.sessions is Sessions.SHARED:
        return (HeldStore("shared", None, (), read=True),)
    replicas = [n.name for n in page.scene.topology.nodes if n.letter]
    return tuple(HeldStore("memory", part(name), (), read=True) for name in replicas)


def _labels() -> dict[str, str]:
    return {
        "orchestrator": gettext("orchestrator"),
        "filter": gettext("filter"),
        "router": gettext("router"),
        "store": gettext("store"),
    }


def _topology(page: Page, health: Health) -> dict[str, Any]:
    drawn = drawing.plates(page.scene.topology, _labels(), down(health))
    return {
        "nodes": drawn,
        "edges": drawing.wires(page.scene.topology, drawn),
        "current": page.scene.rows[-1] if page.scene.rows else None,
    }


def footer(health: Health, sessions: Sessions | None = None) -> dict[str, Any]:
    """Return what the footer says of the deployment, and of a run's store."""
    return {
        "health": [
            FooterPart(
                one.name,
                gettext("replica %s") % part(one.name).letter
                if part(one.name).letter
                else gettext(one.name),
                part(one.name),
                one.up,
                one.since,
            )
            for one in health
        ],
        "store_word": WORDS[sessions] if sessions else "",
    }
