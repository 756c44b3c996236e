"""The bounded memory."""

from __future__ import annotations

from billing_agent.recent import Recent


def kept(limit, *keys):
    memory = Recent(limit)
    for key in keys:
        memory.keep(key, key.upper())
    return memory


def test_unknown_is_none():
    assert kept(1).recall("a") is None


def test_known_is_recalled():
    assert kept(1, "a").recall("a") == "A"


def test_later_value_replaces_the_former():
    memory = kept(2, "a")
    memory.keep("a", "new")
    assert (memory.recall("a"), len(memory)) == ("new", 1)


def test_oldest_is_forgotten():
    memory = kept(2, "a", "b", "c")
    assert [memory.recall(key) for key in "abc"] == [None, "B", "C"]


def test_recalling_keeps():
    memory = kept(2, "a", "b")
    memory.recall("a")
    memory.keep("c", "C")
    assert [memory.recall(key) for key in "abc"] == ["A", None, "C"]


def test_keeping_again_keeps():
    memory = kept(2, "a", "b")
    memory.keep("a", "A")
    memory.keep("c", "C")
    assert memory.recall("a") == "A"
