"""The store of runs: append-only, numbered without gaps, from any process.

What a function here returns is committed.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg.types.json import Jsonb

from orchestrator import database
from orchestrator.errors import RunUnknown
from orchestrator.events import Event, Kind
from orchestrator.models import Run

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

    from orchestrator.config import Configuration

CHANNEL = "run_events"
# Several renewals of ``lease``: only a sender that died misses them all.
ABANDONED_AFTER = timedelta(seconds=10)
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_ID_LENGTHS = (4, 4, 4, 5, 6, 8)
_COLUMNS: LiteralString = (
    "id, continuity, affinity, output, sessions, context_id, tenant, twin_of_id,"
    " started_by, created_at, last_seq, turns_sent, turn_state, active_at,"
    " renewed_at"
)

_CREATE: LiteralString = f"""
    INSERT INTO orchestrator_run ({_COLUMNS})
    VALUES (%s, %s, %s, %s, %s, 'ctx-41', 'acme', %s, %s, now(), 0, 0, 'idle',
        now(), now())
    ON CONFLICT (id) DO NOTHING
    RETURNING {_COLUMNS}"""  # noqa: S608

# The row lock taken by the UPDATE is what numbers the events of four processes.
_APPEND: LiteralString = """
    WITH advanced AS (
        UPDATE orchestrator_run
        SET last_seq = last_seq + 1,
            active_at = clock_timestamp(),
            turn_state = CASE %(kind)s
                WHEN 'turn-ended' THEN 'idle'
                WHEN 'step-failed' THEN 'failed'
                ELSE turn_state
            END
        WHERE id = %(run)s
        RETURNING last_seq, active_at, turns_sent
    ), stored AS (
        INSERT INTO orchestrator_runevent (run_id, seq, at, turn, part, kind, data)
        SELECT %(run)s, last_seq, active_at, turns_sent, %(part)s, %(kind)s, %(data)s
        FROM advanced
        RETURNING seq
    )
    SELECT seq, pg_notify(%(channel)s, %(run)s || ':' || seq) FROM stored"""

_CLAIM: LiteralString = """
    UPDATE orchestrator_run
    SET turns_sent = %(turn)s, turn_state = 'sending', active_at = clock_timestamp(),
        renewed_at = clock_timestamp()
    WHERE id = %(run)s AND (
        (turns_sent = %(turn)s - 1 AND turn_state = 'idle')
        OR (turns_sent = %(turn)s AND (
            turn_state = 'failed'
            OR turn_state = 'sending' AND renewed_at < clock_timestamp() - %(silence)s
        ))
    )
    RETURNING id"""

_DELETE: tuple[LiteralString, ...] = (
    "UPDATE orchestrator_run SET twin_of_id = NULL WHERE twin_of_id = %s",
    "DELETE FROM orchestrator_runevent WHERE run_id = %s",
    "DELETE FROM orchestrator_run WHERE id = %s",
)


async def close() -> None:
    """Close the running loop's connections; the next call opens new ones."""
    await database.close()


def _run(row: TupleRow) -> Run:
    return Run.from_db("default", _COLUMNS.split(", "), row)


async def create(
    configuration: Configuration, *, twin_of: str | None = None, started_by: str = ""
) -> Run:
    """Start a run; nothing is sent yet.

    Args:
        configuration: its switches, for good.
        twin_of: the run it is to be compared with.
        started_by: key of the browser session that may go on with it.

    Raises:
        RuntimeError: no free id was found, which takes very many runs.
    """
    switches = configuration.as_dict().values()
    for length in _ID_LENGTHS:
        run_id = "r-" + "".join(secrets.choice(_LETTERS) for _ in range(length))
        rows = await database.execute(_CREATE, [run_id, *switches, twin_of, started_by])
        if rows:
            return _run(rows[0])
    raise RuntimeError("no free run id")


async def append(run_id: str, part: str, kind: Kind, data: dict[str, Any]) -> int:
    """Store the run's next event, committed before this returns; return its number.

    It belongs to the turn sent last. Listeners on ``run_events`` are told
    ``<run>:<seq>``.

    Args:
        run_id: the run.
        part: who speaks: ``orchestrator``, ``router`` or a replica's name.
        kind: what happened.
        data: the keys that ``Kind`` lists; JSON values only.

    Raises:
        RunUnknown: there is no such run (any more).
    """
    values = {
        "run": run_id,
        "part": part,
        "kind": str(kind),
        "data": Jsonb(data),
        "channel": CHANNEL,
    }
    rows = await database.execute(_APPEND, values)
    if not rows:
        raise RunUnknown(run_id)
    return int(rows[0][0])


async def claim_turn(run_id: str, turn: int) -> bool:
    """Take the right to send a turn; of several claims at once one succeeds.

    A turn may be claimed after the one before it has ended, or again after it
    failed, or when its sender has not renewed the claim for ``ABANDONED_AFTER``.
    """
    values = {"run": run_id, "turn": turn, "silence": ABANDONED_AFTER}
    return bool(await database.execute(_CLAIM, values))


async def renew_claim(run_id: str) -> None:
    """Say that the run's sender is still at it."""
    await database.execute(
        "UPDATE orchestrator_run SET renewed_at = clock_timestamp() WHERE id = %s",
        [run_id],
    )


async def get(run_id: str) -> Run:
    """Return a run.

    Raises:
        RunUnknown: there is no such run.
    """
    rows = await database.execute(
        f"SELECT {_COLUMNS} FROM orchestrator_run WHERE id = %s",  # noqa: S608
        [run_id],
    )
    if not rows:
        raise RunUnknown(run_id)
    return _run(rows[0])


async def read(run_id: str, after: int = 0) -> list[Event]:
    """Return the run's events after number ``after``, in order."""
    rows = await database.execute(
        "SELECT seq, at, turn, part, kind, data FROM orchestrator_runevent"
        " WHERE run_id = %s AND seq > %s ORDER BY seq",
        [run_id, after],
    )
    return [
        Event(seq, at, turn, part, Kind(kind), data)
        for seq, at, turn, part, kind, data in rows
    ]


async def newest(limit: int = 50) -> list[Run]:
    """Return the runs started last, newest first; only those with an event."""
    rows = await database.execute(
        f"SELECT {_COLUMNS} FROM orchestrator_run"  # noqa: S608
        " WHERE last_seq > 0 ORDER BY created_at DESC, id LIMIT %s",
        [limit],
    )
    return [_run(row) for row in rows]


async def delete(run_id: str) -> bool:
    """Delete a run with its events; its twins stay. Return whether there was one."""
    async with database.connection() as connection, connection.transaction():
        # Locked first: an event appended meanwhile waits, then finds no run.
        run = await connection.execute(
            "SELECT 1 FROM orchestrator_run WHERE id = %s FOR UPDATE", [run_id]
        )
        for statement in _DELETE:
            await connection.execute(statement, [run_id])
        return bool(run.rowcount)
