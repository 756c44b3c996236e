"""First sends: which task a message was claimed for, over all replicas."""

from __future__ import annotations

from uuid import uuid4

from billing_agent.stores.pool import Pool, rows

# The first claim wins before any task is stored. One whose task never came to be, on
# a replica that was killed say, lapses.
_CLAIM = """
WITH won AS (
    INSERT INTO billing_agent_a2asend AS held (owner, send_key, task_id)
    VALUES (%(owner)s, %(key)s, %(id)s)
    ON CONFLICT (owner, send_key) DO UPDATE
    SET task_id = excluded.task_id, claimed_at = now()
    WHERE held.claimed_at < now() - interval '10 seconds'
    AND NOT EXISTS (SELECT FROM billing_agent_a2atask WHERE id = held.task_id)
    RETURNING task_id
)
SELECT task_id, true FROM won
UNION ALL
SELECT task_id, false FROM billing_agent_a2asend
WHERE owner = %(owner)s AND send_key = %(key)s AND NOT EXISTS (SELECT FROM won)
"""

_FORGET = """
DELETE FROM billing_agent_a2asend AS held
WHERE owner = %(owner)s AND send_key = %(key)s AND (
    %(stored_too)s
    OR NOT EXISTS (SELECT FROM billing_agent_a2atask WHERE id = held.task_id)
)
"""

# Who works on a task is heard of, also while its message waits for the turn.
_LAPSE = """
DELETE FROM billing_agent_a2asend AS held
WHERE owner = %(owner)s AND send_key = %(key)s
AND claimed_at < now() - make_interval(secs => %(silence)s)
AND NOT EXISTS (
    SELECT FROM billing_agent_a2atask WHERE id = held.task_id
    AND greatest(heartbeat_at, updated_at) > now() - make_interval(secs => %(silence)s)
)
RETURNING 1
"""

_SWEEP = """
DELETE FROM billing_agent_a2asend
WHERE claimed_at < now() - make_interval(secs => %s)
"""


class Sends:
    """Remembers first sends by caller and key.

    Args:
        pool: connections to use.
        silence: seconds after which nobody works on a task that was not heard of.
    """

    def __init__(self, pool: Pool, silence: float = 30.0) -> None:
        self._pool = pool
        self._silence = silence

    async def claim(self, owner: str, key: str, task_id: str) -> tuple[str, bool]:
        """Claim a send; return the task it belongs to, and whether it is the first.

        Args:
            owner: the authenticated subject.
            key: identity of the send, at most 64 characters.
            task_id: the task it names; empty for one that makes a new task, which
                gets a fresh id.
        """
        values = {"owner": owner, "key": key, "id": task_id or str(uuid4())}
        # A claim that commits meanwhile is in sight of the next statement only.
        while not (found := await rows(self._pool, _CLAIM, values)):
            pass
        return found[0][0], found[0][1]

    async def forget(self, owner: str, key: str, *, stored_too: bool) -> None:
        """Give a claim back.

        Args:
            owner: the authenticated subject.
            key: identity of the send.
            stored_too: also when its task is stored.
        """
        values = {"owner": owner, "key": key, "stored_too": stored_too}
        await rows(self._pool, _FORGET, values)

    async def lapse(self, owner: str, key: str) -> bool:
        """Forget a claim whose task nobody works on; return whether it was one.

        For a message that the task has not heard: the replica that claimed it was
        killed, or its client left while it waited.
        """
        values = {"owner": owner, "key": key, "silence": self._silence}
        return bool(await rows(self._pool, _LAPSE, values))

    async def sweep(self, older_than: float) -> None:
        """Forget claims that are older than some seconds."""
        await rows(self._pool, _SWEEP, [older_than])
