"""The statements of the task store, each one round trip."""

from __future__ import annotations

from typing import Final

TERMINAL: Final = """(
    'TASK_STATE_COMPLETED', 'TASK_STATE_CANCELED', 'TASK_STATE_FAILED',
    'TASK_STATE_REJECTED'
)"""

# The event and the notification belong to the save: all of them, or nothing.
_TELL: Final = """, logged AS (
    INSERT INTO billing_agent_a2ataskevent (task_id, version, body)
    SELECT %(id)s, version, %(event)s FROM saved WHERE %(event)s::bytea IS NOT NULL
)
SELECT version, pg_notify('a2a_tasks', json_build_object(
    'task_id', %(id)s::text, 'version', version, 'state', %(state)s::text
)::text)
FROM saved
"""

_UPDATE: Final = f"""
WITH saved AS (
    UPDATE billing_agent_a2atask
    SET version = version + 1, state = %(state)s::text, body = %(body)s,
        status_at = coalesce(%(status_at)s, now()), updated_at = now(),
        replica = CASE
            WHEN %(state)s::text IN {TERMINAL} THEN replica ELSE %(replica)s
        END
    WHERE id = %(id)s AND owner = %(owner)s AND version = %(version)s
    AND state NOT IN {TERMINAL}
"""  # noqa: S608 - made of constants

UPDATE: Final = f"{_UPDATE} RETURNING version) {_TELL}"

FAIL: Final = f"""{_UPDATE}
    AND heartbeat_at IS NOT DISTINCT FROM %(heard_at)s RETURNING version) {_TELL}
"""

INSERT: Final = f"""
WITH saved AS (
    INSERT INTO billing_agent_a2atask (
        id, owner, context_id, state, status_at, version, body, updated_at,
        replica, heartbeat_at
    )
    VALUES (
        %(id)s, %(owner)s, %(context)s, %(state)s, coalesce(%(status_at)s, now()), 1,
        %(body)s, now(), %(replica)s, now()
    )
    ON CONFLICT DO NOTHING
    RETURNING version
) {_TELL}"""  # noqa: S608 - made of constants

LOCK: Final = f"""
SELECT version, body FROM billing_agent_a2atask
WHERE id = %s AND owner = %s AND state NOT IN {TERMINAL}
FOR UPDATE
"""  # noqa: S608 - made of constants

GET: Final = """
SELECT version, body FROM billing_agent_a2atask WHERE id = %s AND owner = %s
"""

CONTEXT: Final = """
SELECT context_id FROM billing_agent_a2atask WHERE id = %s AND owner = %s
"""

LATEST: Final = """
SELECT id, version, state FROM billing_agent_a2atask WHERE id = ANY(%s)
"""

EVENTS: Final = f"""
SELECT task.state IN {TERMINAL}, event.version, event.body
FROM billing_agent_a2atask task
LEFT JOIN billing_agent_a2ataskevent event
    ON event.task_id = task.id AND event.version > %s
WHERE task.id = %s
ORDER BY event.version
"""  # noqa: S608 - made of constants

LIST: Final = """
WITH matching AS NOT MATERIALIZED (
    SELECT id, status_at, body FROM billing_agent_a2atask
    WHERE owner = %(owner)s
    AND (%(context)s::text IS NULL OR context_id = %(context)s)
    AND (%(state)s::text IS NULL OR state = %(state)s)
    AND (%(since)s::timestamptz IS NULL OR status_at >= %(since)s)
)
SELECT total.tasks, page.id, page.status_at, page.body
FROM (SELECT count(*) AS tasks FROM matching) total
LEFT JOIN LATERAL (
    SELECT * FROM matching
    WHERE %(at)s::timestamptz IS NULL OR (status_at, id) < (%(at)s, %(after)s)
    ORDER BY status_at DESC, id DESC
    LIMIT %(limit)s
) page ON true
ORDER BY page.status_at DESC, page.id DESC
"""

DELETE_EVENTS: Final = "DELETE FROM billing_agent_a2ataskevent WHERE task_id = %s"
DELETE: Final = "DELETE FROM billing_agent_a2atask WHERE id = %s"
LOCK_ANY: Final = """
SELECT id FROM billing_agent_a2atask WHERE id = %s AND owner = %s FOR UPDATE
"""

HEARTBEAT: Final = """
UPDATE billing_agent_a2atask SET replica = %s, heartbeat_at = now() WHERE id = ANY(%s)
"""

RUNS: Final = """
SELECT 1 FROM billing_agent_a2atask
WHERE id = %s AND state IN ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING')
AND greatest(heartbeat_at, updated_at) > now() - make_interval(secs => %s)
"""

STUCK: Final = """
SELECT body, version, owner, replica, heartbeat_at
FROM billing_agent_a2atask
WHERE state IN ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING')
AND (%(replica)s::text IS NULL OR replica = %(replica)s)
AND updated_at < now() - make_interval(secs => %(seconds)s)
AND (
    heartbeat_at IS NULL OR heartbeat_at < now() - make_interval(secs => %(seconds)s)
)
ORDER BY updated_at
LIMIT %(limit)s
"""
