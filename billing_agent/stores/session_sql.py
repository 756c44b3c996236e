"""The statements of the session service, each one round trip."""

from __future__ import annotations

from typing import Final

# State is merged key by key at the top level, as ``dict.update`` does.
_ADD_APP_STATE: Final = """
    INSERT INTO billing_agent_adkappstate AS held (app_name, state)
    SELECT %(app)s, %(app_delta)s FROM changed WHERE %(app_delta)s <> '{}'
    ON CONFLICT (app_name) DO UPDATE SET state = held.state || excluded.state
    RETURNING state
"""
_ADD_USER_STATE: Final = """
    INSERT INTO billing_agent_adkuserstate AS held (app_name, user_id, state)
    SELECT %(app)s, %(user)s, %(user_delta)s FROM changed WHERE %(user_delta)s <> '{}'
    ON CONFLICT (app_name, user_id) DO UPDATE SET state = held.state || excluded.state
    RETURNING state
"""

CREATE: Final = f"""
WITH changed AS (
    INSERT INTO billing_agent_adksession
        (app_name, user_id, session_id, state, revision, updated_at)
    VALUES (%(app)s, %(user)s, %(session)s, %(session_delta)s, 0, %(at)s)
    ON CONFLICT DO NOTHING
    RETURNING id, state
), app AS ({_ADD_APP_STATE}), person AS ({_ADD_USER_STATE})
SELECT id, state,
    coalesce(
        (SELECT state FROM person),
        (SELECT state FROM billing_agent_adkuserstate
         WHERE app_name = %(app)s AND user_id = %(user)s)
    ),
    coalesce(
        (SELECT state FROM app),
        (SELECT state FROM billing_agent_adkappstate WHERE app_name = %(app)s)
    )
FROM changed
"""  # noqa: S608 - made of constants

# The events after what the reader knows already, or after a bound of its own:
# ``seq`` counts them without a gap.
EVERYTHING: Final = {"row": 0, "revision": 0, "recent": None, "after": None}
GET: Final = """
SELECT s.id, s.revision, s.updated_at,
    (
        SELECT string_agg(e.body, ',' ORDER BY e.seq)
        FROM billing_agent_adkevent e
        WHERE e.session_id = s.id AND e.seq > greatest(
            CASE WHEN s.id = %(row)s THEN %(revision)s ELSE 0 END,
            s.revision - %(recent)s::bigint,
            (
                SELECT max(old.seq) FROM billing_agent_adkevent old
                WHERE old.session_id = s.id AND old.timestamp < %(after)s::float8
                AND %(after)s::float8 IS NOT NULL
            )
        )
    ),
    s.state, u.state, a.state
FROM billing_agent_adksession s
LEFT JOIN billing_agent_adkuserstate u USING (app_name, user_id)
LEFT JOIN billing_agent_adkappstate a USING (app_name)
WHERE app_name = %(app)s AND user_id = %(user)s AND s.session_id = %(session)s
"""

LIST: Final = """
SELECT user_id, s.session_id, s.id, s.revision, s.updated_at, s.state, u.state, a.state
FROM billing_agent_adksession s
LEFT JOIN billing_agent_adkuserstate u USING (app_name, user_id)
LEFT JOIN billing_agent_adkappstate a USING (app_name)
WHERE app_name = %s AND user_id BETWEEN %s AND %s
ORDER BY s.updated_at, user_id, s.session_id
"""

USER_STATE: Final = """
SELECT state FROM billing_agent_adkuserstate WHERE app_name = %s AND user_id = %s
"""

HELD: Final = """
SELECT s.session_id, count(e.id)
FROM billing_agent_adksession s
LEFT JOIN billing_agent_adkevent e ON e.session_id = s.id
WHERE s.app_name = %s AND s.user_id = %s
GROUP BY s.id
ORDER BY s.id
"""

# The same event delivered again is recognised by its id and its whole body.
APPEND: Final = f"""
WITH held AS (
    SELECT id FROM billing_agent_adksession
    WHERE app_name = %(app)s AND user_id = %(user)s AND session_id = %(session)s
), known AS (
    SELECT FROM billing_agent_adkevent e JOIN held ON e.session_id = held.id
    WHERE e.event_id = %(event)s AND e.body = %(body)s
), changed AS (
    UPDATE billing_agent_adksession
    SET revision = revision + 1, state = state || %(session_delta)s,
        updated_at = %(at)s
    WHERE id = (SELECT id FROM held) AND id = coalesce(%(row)s, id)
    AND revision = %(revision)s AND NOT EXISTS (SELECT FROM known)
    RETURNING id, revision
), added AS (
    INSERT INTO billing_agent_adkevent (session_id, seq, event_id, timestamp, body)
    SELECT id, revision, %(event)s, %(at)s, %(body)s FROM changed
), app AS ({_ADD_APP_STATE}), person AS ({_ADD_USER_STATE})
SELECT EXISTS (SELECT FROM held), EXISTS (SELECT FROM known), (SELECT id FROM changed)
"""  # noqa: S608 - made of constants

LOCK: Final = """
SELECT id FROM billing_agent_adksession
WHERE app_name = %(app)s AND user_id = %(user)s AND session_id = %(session)s
FOR UPDATE
"""
DELETE_EVENTS: Final = "DELETE FROM billing_agent_adkevent WHERE session_id = %s"
DELETE: Final = "DELETE FROM billing_agent_adksession WHERE id = %s"
