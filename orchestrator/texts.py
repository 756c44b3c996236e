"""Every text of the walkthrough's six steps: an id and its English."""

from __future__ import annotations

from orchestrator.sentences import gettext_noop

STEPS = range(6)
_ = gettext_noop

TEXTS: dict[str, str] = {
    "walk.0.title": _("Two copies, one conversation"),
    "walk.0.body": _(
        "An orchestrator owned by one team wants an answer from a billing agent owned"
        " by another. The billing agent runs twice, as replica A and replica B, behind"
        " a thin router. The two copies share code and nothing else: what one holds in"
        " memory the other cannot see."
    ),
    "walk.0.name": _(
        "The protocol gives a conversation one name, the context id. Everything on"
        " this page is about whether that name still leads to the same memory when the"
        " second message arrives."
    ),
    "walk.0.shared": _(
        "In this run the two copies do share one thing: their sessions are rows in"
        " PostgreSQL. What each is working on at the moment stays its own."
    ),
    "walk.0.look": _("the two ledgers, one for each copy."),
    "walk.0.look.shared": _("the one ledger."),
    "walk.0.ask": _("what has to be true for the second message to make sense?"),
    "walk.0.holds": _("A2A 1.0: the context id is the conversation's only name."),
    "walk.1.title": _("A question with no history"),
    "walk.1.body": _(
        "The orchestrator asks why invoice 8812 is higher than last month and opens a"
        " new context, %(context)s. Before any agent code runs, an HTTP filter checks"
        " the bearer token, finds that it belongs to acme and writes that fact into"
        " the request under a key only the server may write."
    ),
    "walk.1.refused": _(
        "If the caller had sent the same key, it would be overwritten. A request with"
        " a bad token stops here with an authorization error, not with a canceled"
        " task."
    ),
    "walk.1.look": _("the request metadata, before and after the filter."),
    "walk.1.ask": _("why not check the token inside the agent's before-hook?"),
    "walk.1.holds": _(
        "This demo. A hook can only cancel, and only once a task exists."
    ),
    "walk.2.title": _("Same id, same copy"),
    "walk.2.affinity_on": _(
        "The router scores %(context)s against each replica and the higher score wins:"
        " %(first)s."
    ),
    "walk.2.affinity_off": _(
        "The router takes turns and this one falls to %(first)s. It has not looked at"
        " the context id at all."
    ),
    "walk.2.fix_on": _(
        "%(first)s registers the task, then prepares a session. Nobody has talked in"
        " this context before, so the lookup finds nothing, and the continuity step"
        " creates a session whose id is the context id. That one choice is the whole"
        " fix: the name used to store and the name used to look up are now equal. The"
        " agent's user is A2A_USER_%(context)s, so anything kept per user is really"
        " kept per conversation."
    ),
    "walk.2.fix_off": _(
        "%(first)s registers the task, then prepares a session. The lookup asks for"
        " %(context)s and finds nothing, but the session that gets created carries a"
        " fresh random id. Nothing looks wrong yet; a one-shot demo would pass."
    ),
    "walk.2.look.fix_on": _("lookup %(context)s, then create %(context)s."),
    "walk.2.look.fix_off": _("lookup %(context)s, then create under another name."),
    "walk.2.ask": _("who else could have found this session, and by which name?"),
    "walk.2.holds": _(
        "The random id: ADK Java (main at 7ed0a93, 1.13.0). ADK Python 2.13 creates"
        " under the context id. This demo: the continuity switch."
    ),
    "walk.3.title": _("Looking up, then asking back"),
    "walk.3.body": _(
        "The agent calls get_invoice. The tool takes the tenant from the verified key"
        " and reads acme's rows only; with the key missing it refuses rather than"
        " picking a default. The bill has four lines, so the agent cannot know which"
        " one is meant and asks."
    ),
    "walk.3.waits": _(
        "The task does not end; it waits for input. This is the point where memory"
        " starts to matter: the answer to come will be three words long."
    ),
    "walk.3.per_event": _(
        "Every step of this thinking has already left the building. See what the other"
        " team now holds."
    ),
    "walk.3.look": _("where the tool found the tenant, and the four events kept."),
    "walk.3.ask": _("which process could answer the three words?"),
    "walk.3.holds": _(
        "Asking back from a long-running tool: ADK Python 2.13 and this demo. ADK"
        " Java's executor never does."
    ),
    "walk.4.title": _("Three words that need a past"),
    "walk.4.body": _(
        "“The compute line.” The reply names the same context and the same task, and"
        " nothing else."
    ),
    "walk.4.remembered": _(
        "The router computes the same scores and picks %(second)s again. The lookup"
        " finds %(context)s with four earlier events; with the new message the agent"
        " sees five, knows the invoice and the line, and releases a comparison:"
        " compute rose by 1,055.00, from 952.5 to 1,480 hours at an unchanged rate."
    ),
    "walk.4.remembered.shared": _(
        "The router computes the same scores and picks %(second)s again, but any"
        " replica would do. The lookup finds %(context)s with four earlier events in"
        " the common store; with the new message the agent sees five and releases a"
        " comparison: compute rose by 1,055.00, from 952.5 to 1,480 hours at an"
        " unchanged rate."
    ),
    "walk.4.remembered.alone": _(
        "The router takes turns, but there is no other replica to take this one:"
        " %(second)s again. The lookup finds %(context)s with four earlier events; with"
        " the new message the agent sees five and releases a comparison: compute rose"
        " by 1,055.00, from 952.5 to 1,480 hours at an unchanged rate."
    ),
    "walk.4.fix_off": _(
        "Same replica, but the lookup asks for a name nothing was stored under. A"
        " second session is made, the agent sees one event, three words without a"
        " subject, and asks the same question again."
    ),
    "walk.4.affinity_off.memory": _(
        "The fix did its work, on the other replica. %(second)s has never heard of"
        " %(context)s, so it creates its own: now the conversation exists twice, half"
        " here and half there."
    ),
    "walk.4.affinity_off.shared": _(
        "%(second)s finds the history in the common store and answers. The"
        " conversation survived the move; a running task would not have."
    ),
    "walk.4.both_off.memory": _(
        "Two pieces are missing and either alone would be enough to forget. The"
        " message reaches %(second)s, which holds nothing; and had it reached"
        " %(first)s, the session there goes by a name nobody asks for."
    ),
    "walk.4.both_off.shared": _(
        "%(second)s reads the same store as %(first)s and still finds nothing. A"
        " shared store does not help a lookup by another name: the history sits one"
        " row away, under a random id."
    ),
    "walk.4.surprise": _(
        "The run was measured otherwise than the rule says: the rule says"
        " “%(predicted)s”, the run says “%(measured)s”. The events tell where the two"
        " part."
    ),
    "walk.4.surprise.memory": _(
        "A replica that was restarted forgets what it held in memory."
    ),
    "walk.4.per_event": _(
        "What the agent says on the way leaves as well, artifact by artifact, before"
        " anybody decided that it should."
    ),
    "walk.4.look.answers": _("events the agent saw: five."),
    "walk.4.look.asks": _("events the agent saw: one."),
    "walk.4.look.surprise": _("what the lookup found, and what the agent saw."),
    "walk.4.ask": _("who is at fault when the same question comes back?"),
    "walk.4.holds": _(
        "A plain-text answer to a waiting task: ADK Java and this demo run it; ADK"
        " Python's newer executor refuses it."
    ),
    "walk.5.title": _("Take a piece away"),
    "walk.5.body": _(
        "Put the pieces next to each other. Without the fix, the right replica does not"
        " help. Without affinity, the fix alone makes a second conversation wherever"
        " the message lands. A shared store repairs memory but not cancel, because the"
        " record of running work still lives in one process."
    ),
    "walk.5.choose": _(
        "Choose two: stable naming always; then affinity, or a shared store plus a"
        " cancel channel."
    ),
    "walk.5.look": _("the five answers, and which single switch would change them."),
    "walk.5.ask": _(
        "flip one switch, or send a third message with affinity off and watch a"
        " replica remember a conversation that skipped its middle. What did it miss?"
    ),
    "walk.5.holds": _("This demo measures every line above; nothing is acted."),
}
