"""Template tags of the walkthrough: addresses, marks, sentences, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from orchestrator.asked import address
from orchestrator.drawing import short_id
from orchestrator.page import Place
from orchestrator.sentences import sentence

if TYPE_CHECKING:
    from orchestrator.drawing import Plate
    from orchestrator.events import Event
    from orchestrator.scene import Part, Row
    from orchestrator.sentences import Phrase

LONGEST_WHOLE = 24
_FIRST = ("url", "headers", "body", "tenant", "metadata_before", "metadata_after")
register = template.Library()
register.filter("short_id", short_id)
register.simple_tag(address, name="place_url")

_MARK = (
    '<svg class="mark part-{}" width="14" height="14" viewBox="0 0 14 14"'
    ' aria-hidden="true"><use href="#shape-{}{}"></use></svg>'
)


@register.simple_tag
def mark(part: Part | Plate, down: bool = False) -> SafeString:
    """Draw a part's shape; hollow when it is down."""
    return format_html(_MARK, part.name, part.shape, "-hollow" if down else "")


@register.filter
def say(phrase: Phrase) -> str:
    """Render a sentence in the reader's language."""
    return sentence(phrase, gettext)


@register.filter
def exact(text: str) -> SafeString:
    """Escape a text so that a browser gives it back letter by letter.

    HTML reads a bare carriage return as a line feed, a reference to one is kept.
    """
    return mark_safe(escape(text).replace("\r", "&#13;"))  # noqa: S308 escaped above


@register.filter
def whole(text: str, name: str) -> SafeString:
    """Escape a text and keep a short id in it from breaking at its hyphen."""
    escaped, kept = conditional_escape(text), escape(name)
    if not name or len(name) > LONGEST_WHOLE:
        return escaped
    span = f'<span class="id">{kept}</span>'
    return mark_safe(escaped.replace(kept, span))  # noqa: S308 escaped above


@register.filter
def as_json(value: Any) -> str:
    """Write a JSON value for people to read."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.simple_tag
def event_url(run: str, row: Row) -> str:
    """Return the address of an event of the list."""
    return address(run, Place(row.step, row.seq))


@register.filter
def short_wire(name: str) -> str:
    """Return a protocol name without the prefix that all its siblings share."""
    return name.removeprefix("TASK_STATE_")


@register.filter
def wire_json(event: Event) -> str:
    """Return what an event carried: request or response if it has one."""
    carried = event.data.get("request") or event.data.get("response") or event.data
    return as_json(dict(sorted(carried.items(), key=_reading_order)))


def _reading_order(item: tuple[str, Any]) -> int:
    """Rank a key: the database keeps no order of its own."""
    return _FIRST.index(item[0]) if item[0] in _FIRST else len(_FIRST)
