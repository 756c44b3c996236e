"""Metadata that only the server may write: taken out, then stamped."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from types import NoneType
from typing import Any

from billing_agent.errors import RequestRefused

TENANT_KEY = "x-verified-tenant"
DEPTH_LIMIT = 100
_OWNED = frozenset({"xverifiedtenant"})
_SHORTEST = min(map(len, _OWNED))
_LONGEST_REMEMBERED = 64


def server_owned(key: str) -> bool:
    """Return whether the key is a spelling of one that only the server writes.

    Letter case, separators, invisible characters and compatibility forms (full
    width, ligatures) make no difference.
    """
    if key.isascii() and len(key) < _SHORTEST:
        return False
    spelled = _remembered if len(key) <= _LONGEST_REMEMBERED else _plain
    return spelled(key) in _OWNED


def _plain(key: str) -> str:
    folded = unicodedata.normalize("NFKC", key).casefold()
    return "".join(filter(str.isalnum, folded))


_remembered = lru_cache(1024)(_plain)


def stripped(document: Any, spared: frozenset[int] = frozenset()) -> Any:
    """Return a JSON document without server-owned keys at any depth.

    The document itself comes back when it has none; it is never changed.

    Args:
        document: what the caller sent.
        spared: ``id()`` of the containers that are the caller's content, not
            metadata: returned as they are.

    Raises:
        RequestRefused: nested deeper than ``DEPTH_LIMIT``, which is protobuf's own.
    """
    return _stripped(document, spared, 0)


def _stripped(node: Any, spared: frozenset[int], depth: int) -> Any:
    if not isinstance(node, dict | list) or id(node) in spared:
        return node
    if depth >= DEPTH_LIMIT:
        raise RequestRefused("nested too deeply")
    if isinstance(node, list):
        items = [_stripped(item, spared, depth + 1) for item in node]
        return items if _differ(items, node) else node
    kept = {
        key: _stripped(value, spared, depth + 1)
        for key, value in node.items()
        if not server_owned(key)
    }
    changed = len(kept) < len(node) or _differ(kept.values(), node.values())
    return kept if changed else node


def _differ(new: Any, old: Any) -> bool:
    return any(one is not other for one, other in zip(new, old, strict=True))


def payloads(message: dict[str, Any]) -> frozenset[int]:
    """Return ``id()`` of a message's data parts: content, which is left alone."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return frozenset()
    return frozenset(id(part["data"]) for part in parts if _has_data(part))


def _has_data(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("data"), dict | list)


def stamped(metadata: Any, tenant: str) -> dict[str, Any]:
    """Return the metadata of a send with the verified tenant in it.

    Raises:
        RequestRefused: the metadata is no object.
    """
    if not isinstance(metadata, dict | NoneType):
        raise RequestRefused("params.metadata must be an object")
    return {**(metadata or {}), TENANT_KEY: tenant}
