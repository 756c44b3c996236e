"""Recorded runs for the tests: built from what happened, never from the rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from orchestrator.events import Event, Kind

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
QUESTION = "Which line item do you mean?"
ANSWER = "Compute rose by 1,055.00."
REMARK = "renewal at risk, do not volunteer a discount"
DATA = {"line": "compute", "change": "1055.00"}
USER = "A2A_USER_ctx-41"


@dataclass
class Recording:
    """A run in the making; every method appends what its name says."""

    events: list[Event] = field(default_factory=list)
    turn: int = 0

    def add(self, part, kind, **data):
        seq = len(self.events) + 1
        at = START + timedelta(milliseconds=seq)
        self.events.append(Event(seq, at, self.turn, part, kind, data))
        return self

    def sent(self, text, task_id="", turn=None):
        self.turn = turn or self.turn + 1
        return self.add(
            "orchestrator",
            Kind.MESSAGE_SENT,
            text=text,
            context_id="ctx-41",
            task_id=task_id,
            message_id=f"r-test-{self.turn}",
            request={},
        )

    def verified(self, part, tenant="acme"):
        return self.add(
            part,
            Kind.CALLER_VERIFIED,
            tenant=tenant,
            metadata_before={},
            metadata_after={"x-verified-tenant": tenant},
        )

    def chosen(self, replica, affinity=True, reason=None, replicas=("a", "b")):
        scores = {f"replica-{name}": f"{name}0ff" for name in replicas}
        return self.add(
            "router",
            Kind.REPLICA_CHOSEN,
            replica=replica,
            reason=reason or ("affinity" if affinity else "turn"),
            affinity=affinity,
            scores=scores,
        )

    def looked_up(self, replica, store, found=False, events=0, by="hook"):
        return self.add(
            replica,
            Kind.SESSION_LOOKED_UP,
            store=store,
            asked_for="ctx-41",
            found=found,
            events=None if by == "hook" else events,
            by=by,
        )

    def created(self, replica, store, session_id, by="hook"):
        return self.add(
            replica, Kind.SESSION_CREATED, store=store, session_id=session_id, by=by
        )

    def model(self, replica, call, session_id, seen):
        return self.add(
            replica,
            Kind.MODEL_CALLED,
            call=call,
            session_id=session_id,
            events_seen=len(seen),
            seen=[*seen],
        )

    def tool(self, replica, tool="get_invoice", tenant="acme"):
        return self.add(
            replica, Kind.TOOL_CALLED, tool=tool, arguments={}, tenant=tenant
        )

    def state(self, replica, state):
        return self.add(replica, Kind.TASK_STATE_CHANGED, state=state, text="")

    def received(self, replica, type="status", state="", text="", size=50, **more):
        data = {
            "type": type,
            "task_id": "task-1",
            "context_id": "ctx-41",
            "state": state,
            "text": text,
            "texts": [],
            "artifact_id": "",
            "append": False,
            "last_chunk": False,
            "data": [],
            "size": size,
            "replica": replica,
            "response": {},
        }
        return self.add("orchestrator", Kind.EVENT_RECEIVED, **data | more)

    def artifact(self, replica, artifact_id, *texts, data=(), size=100, **more):
        return self.received(
            replica,
            type="artifact",
            artifact_id=artifact_id,
            texts=[*texts],
            data=[*data],
            last_chunk=more.pop("last_chunk", True),
            size=size,
            **more,
        )

    def ledger(self, held, shared=(), unread=()):
        """``held`` maps a replica to its (session id, events) pairs."""
        stores = [
            _store("memory", name, sessions) for name, sessions in sorted(held.items())
        ]
        stores.append(_store("shared", "", shared))
        return self.add(
            "orchestrator", Kind.LEDGER_READ, stores=stores, unread=[*unread]
        )

    def ended(self, replica, state):
        return self.add(
            "orchestrator",
            Kind.TURN_ENDED,
            state=state,
            replica=replica,
            task_id="task-1",
            context_id="ctx-41",
            duration_ms=120,
        )

    def failed(self, reason="failed.unreachable", error_id="0123456789ab"):
        return self.add(
            "orchestrator",
            Kind.STEP_FAILED,
            reason=reason,
            sentence="The billing agent could not be reached.",
            error_id=error_id,
        )


def _store(store, replica, sessions):
    held = [
        {"user": USER, "session_id": session_id, "events": events}
        for session_id, events in sessions
    ]
    return {"store": store, "replica": replica, "sessions": held}


@dataclass(frozen=True)
class Happened:
    """What one run did: who served, which sessions were used and held."""

    store: str = "memory"
    hook: bool = True
    affinity: bool = True
    replicas: tuple[str, str] = ("replica-b", "replica-b")
    sessions: tuple[str, str] = ("ctx-41", "ctx-41")
    found: bool = True
    noisy: bool = False
    router: bool = True


def _session(recording, happened, turn, found):
    replica, session = happened.replicas[turn - 1], happened.sessions[turn - 1]
    by = "hook" if happened.hook else "lookup"
    events = 4 if found else 0
    recording.looked_up(replica, happened.store, found, events, by)
    if not found:
        recording.created(replica, happened.store, session, by)
    if happened.hook:
        recording.looked_up(replica, happened.store, True, events, "lookup")


def _began(recording, happened, turn, text, task_id=""):
    replica = happened.replicas[turn - 1]
    recording.sent(text, task_id).verified("router")
    if happened.router:
        recording.chosen(replica, happened.affinity)
    recording.verified(replica)


def _held(happened):
    """List what the stores hold after turn 2, from the sessions used."""
    kept: dict[tuple[str, str], int] = {}
    for turn, replica in enumerate(happened.replicas):
        place = "shared" if happened.store == "shared" else replica
        key = place, happened.sessions[turn]
        kept[key] = kept.get(key, 0) + (4 if turn == 0 else 2)
    memory = {
        name: [(s, n) for (place, s), n in kept.items() if place == name]
        for name in ("replica-a", "replica-b")
    }
    return memory, [(s, n) for (place, s), n in kept.items() if place == "shared"]


def first_turn(recording, happened):
    replica, session = happened.replicas[0], happened.sessions[0]
    _began(recording, happened, 1, "Why was invoice 8812 higher than last month?")
    recording.state(replica, "TASK_STATE_SUBMITTED")
    recording.received(replica, "task", "TASK_STATE_SUBMITTED")
    _session(recording, happened, 1, found=False)
    recording.state(replica, "TASK_STATE_WORKING")
    recording.received(replica, state="TASK_STATE_WORKING")
    recording.model(replica, 1, session, ["user: why"]).tool(replica)
    if happened.noisy:
        recording.artifact(replica, "one-1", data=[{"adk_type": "function_call"}])
        recording.artifact(replica, "one-2", data=[{"adk_type": "function_response"}])
    recording.model(replica, 2, session, ["user: why", "call", "result"])
    recording.tool(replica, "ask_user")
    recording.state(replica, "TASK_STATE_INPUT_REQUIRED")
    recording.received(replica, state="TASK_STATE_INPUT_REQUIRED", text=QUESTION)
    held = [(session, 4)]
    if happened.store == "shared":
        recording.ledger({"replica-a": [], "replica-b": []}, held)
    else:
        recording.ledger({"replica-a": [], "replica-b": [], replica: held})
    return recording.ended(replica, "TASK_STATE_INPUT_REQUIRED")


def _second_answer(recording, happened, replica, session):
    seen = ["user: why", "call", "result", "ask", "user: the compute line"]
    recording.model(replica, 1, session, seen).tool(replica, "compare_line_item")
    if happened.noisy:
        recording.artifact(
            replica, "two-1", REMARK, data=[{"adk_type": "function_call"}]
        )
        recording.artifact(replica, "two-2", data=[{"adk_type": "function_response"}])
    recording.model(replica, 2, session, [*seen, "call", "result"])
    recording.artifact(replica, "two-3", ANSWER, data=[DATA], size=200)
    recording.state(replica, "TASK_STATE_COMPLETED")
    recording.received(replica, state="TASK_STATE_COMPLETED")
    return "TASK_STATE_COMPLETED"


def _second_question(recording, happened, replica, session):
    recording.model(replica, 1, session, ["user: the compute line"])
    recording.tool(replica, "ask_user")
    recording.state(replica, "TASK_STATE_INPUT_REQUIRED")
    recording.received(replica, state="TASK_STATE_INPUT_REQUIRED", text=QUESTION)
    return "TASK_STATE_INPUT_REQUIRED"


def second_turn(recording, happened):
    replica, session = happened.replicas[1], happened.sessions[1]
    _began(recording, happened, 2, "The compute line.", "task-1")
    _session(recording, happened, 2, happened.found)
    recording.state(replica, "TASK_STATE_WORKING")
    recording.received(replica, state="TASK_STATE_WORKING")
    tell = _second_answer if happened.found else _second_question
    state = tell(recording, happened, replica, session)
    recording.ledger(*_held(happened))
    return recording.ended(replica, state)


def recorded(happened=None):
    """Return the events of a whole run in which this happened."""
    happened = happened or Happened()
    recording = Recording()
    first_turn(recording, happened)
    return second_turn(recording, happened).events
