"""Every sentence the fold and the verdict say: an id, its English, its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def gettext_noop(text: str) -> str:
    """Mark a text for makemessages; the caller of ``sentence`` translates it."""
    return text


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence by id, with the values it names.

    Args:
        key: an id of ``ENGLISH``.
        values: what the text's ``%(name)s`` places hold: text as it is, numbers, and
            phrases, which are translated with it.
    """

    key: str
    values: dict[str, str | int | Phrase] = field(default_factory=dict)


_ = gettext_noop

ENGLISH: dict[str, str] = {
    # the verdict strip
    "verdict.open": _("Not decided yet. Turn 2 decides."),
    "verdict.on.on.memory": _(
        "Remembered. Turn 2 reached replica %(second)s, found session %(context)s"
        " and saw %(seen)s events."
    ),
    "verdict.on.on.shared": _(
        "Remembered. Turn 2 found session %(context)s in the shared store"
        " and saw %(seen)s events."
    ),
    "verdict.on.off.memory": _(
        "Forgot. Session %(context)s is on %(first)s; turn 2 reached %(second)s,"
        " which started a second %(context)s and saw %(seen)s event."
    ),
    "verdict.on.off.shared": _(
        "Remembered on another replica."
        " History is shared, the running work is not: try cancel."
    ),
    "verdict.off.on": _(
        "Forgot. Right replica, wrong key: the lookup asked for %(context)s,"
        " the stored session has a generated id."
    ),
    "verdict.off.off.memory": _(
        "Forgot. Another replica and a generated id: either alone would be enough."
    ),
    "verdict.off.off.shared": _(
        "Forgot. A generated id:"
        " sharing the store does not help a lookup by another name."
    ),
    "verdict.surprise": _(
        'Surprise. The rule said "%(predicted)s", the run says "%(measured)s".'
    ),
    "outcome.answers": _("answers"),
    "outcome.asks": _("asks"),
    "outcome.neither": _("neither answers nor asks"),
    "aspect.path": _("path %(value)s"),
    "aspect.moved": _("another replica"),
    "aspect.stayed": _("the same replica"),
    "aspect.seen": _("saw %(value)s"),
    "aspect.sessions": _("sessions %(value)s"),
    # which single switch would change the outcome
    "switch.open": _("Turn 2 decides."),
    "switch.unknown": _("The run disagrees with the rule, so the rule cannot tell."),
    "switch.none": _("No single switch: two things are missing."),
    "switch.one": _("One switch would: %(first)s."),
    "switch.two": _("Either would: %(first)s, or %(second)s."),
    "flip.continuity.on": _("continuity fix on"),
    "flip.continuity.off": _("continuity fix off"),
    "flip.affinity.on": _("affinity on"),
    "flip.affinity.off": _("affinity off"),
    "flip.sessions.memory": _("sessions in memory"),
    "flip.sessions.shared": _("sessions shared"),
    # the rows of the event list
    "row.message-sent": _('message "%(text)s", context %(context)s'),
    "row.event-received.task": _("task received: %(state)s"),
    "row.event-received.status": _("status received: %(state)s"),
    "row.event-received.message": _("empty message received"),
    "row.event-received.question": _('question received: "%(text)s"'),
    "row.event-received.text": _('intermediate text received: "%(text)s"'),
    "row.event-received.artifact": _('artifact received: "%(text)s"'),
    "row.event-received.data": _("artifact received: data"),
    "row.ledger-read.one": _("stores read: 1 session held"),
    "row.ledger-read.other": _("stores read: %(count)s sessions held"),
    "row.turn-ended": _("turn %(turn)s ended: %(state)s, %(milliseconds)s ms"),
    "row.step-failed": _("failed: %(sentence)s (error id %(error_id)s)"),
    "row.caller-verified": _("token verified, tenant key stamped: %(tenant)s"),
    "row.replica-chosen.affinity": _(
        "router to %(letter)s: highest score for this context"
    ),
    "row.replica-chosen.turn": _("router to %(letter)s: turn by turn"),
    "row.replica-chosen.down": _(
        "router to %(letter)s: the context belongs to %(owner)s, which is down"
    ),
    "row.replica-chosen.other": _("router to %(letter)s: %(reason)s"),
    "row.session-looked-up.hook.missed": _(
        "continuity fix: looked up %(asked_for)s, not found"
    ),
    "row.session-looked-up.hook.found": _(
        "continuity fix: looked up %(asked_for)s, found"
    ),
    "row.session-looked-up.lookup.missed": _(
        "session: looked up %(asked_for)s, not found"
    ),
    "row.session-looked-up.lookup.one": _(
        "session: looked up %(asked_for)s, found, 1 event"
    ),
    "row.session-looked-up.lookup.other": _(
        "session: looked up %(asked_for)s, found, %(events)s events"
    ),
    "row.session-created.hook": _("continuity fix: created session %(session)s"),
    "row.session-created.lookup": _("session: created %(session)s"),
    "row.model-called.one": _("model call %(call)s: sees 1 event"),
    "row.model-called.other": _("model call %(call)s: sees %(events)s events"),
    "row.tool-called": _("tool %(tool)s for tenant %(tenant)s"),
    "row.tool-called.nobody": _("tool %(tool)s without a verified tenant"),
    "row.task-state-changed": _("task: %(state)s"),
    "row.artifact-released": _("artifact released: %(size)s bytes"),
    "row.cancel-heard.request": _("cancel heard: by request, the run stops"),
    "row.cancel-heard.channel": _("cancel heard: through the channel, the run stops"),
    # words for protocol states
    "state.SUBMITTED": _("submitted"),
    "state.WORKING": _("working"),
    "state.INPUT_REQUIRED": _("asks a question back"),
    "state.COMPLETED": _("completed"),
    "state.FAILED": _("failed"),
    "state.CANCELED": _("canceled"),
    "state.REJECTED": _("rejected"),
    "state.AUTH_REQUIRED": _("wants an authorization"),
    # why a step failed
    "failed.unreachable": _("The billing agent could not be reached."),
    "failed.silent": _("The billing agent did not answer in time."),
    "failed.refused": _("The billing agent refused the request."),
    "failed.token": _("No access token could be had from the issuer."),
    "failed.broken-off": _("The answer broke off before the turn ended."),
    "failed.agent": _("The billing agent could not finish the turn."),
    "failed.stopped": _("The turn was stopped before it ended."),
    "failed.unexpected": _("Something went wrong on our side."),
}


def same(text: str) -> str:
    """Leave a text in English."""
    return text


def sentence(phrase: Phrase, translate: Callable[[str], str] = same) -> str:
    """Render a phrase.

    Args:
        phrase: the sentence to say.
        translate: ``gettext`` on a page, nothing in a terminal.

    Raises:
        KeyError: ``ENGLISH`` has no such id, or a value is missing.
    """
    values = {
        name: sentence(value, translate) if isinstance(value, Phrase) else value
        for name, value in phrase.values.items()
    }
    return translate(ENGLISH[phrase.key]) % values
