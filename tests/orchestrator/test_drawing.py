"""The drawing: what is held fits its plate."""

from __future__ import annotations

import pytest

from orchestrator.drawing import plates
from orchestrator.scene import HeldSession, HeldStore
from orchestrator.topology import topology

IDS = [f"{number}e53ad7c-4b38-4907-b721-cb457c630510" for number in range(4)]


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        (0, []),
        (2, ["0e53…0510", "1e53…0510"]),
        (3, ["0e53…0510", "+2"]),
        (4, ["0e53…0510", "+3"]),
    ],
)
def test_a_store_names_what_it_has_room_for_and_counts_the_rest(held, shown):
    sessions = tuple(HeldSession("user", id, 2) for id in IDS[:held])
    ledger = [HeldStore("shared", None, sessions, read=True)]
    drawn = plates(topology((), ledger, ("replica-a", "replica-b")), {})
    (store,) = (plate for plate in drawn if plate.name == "store")
    assert [line.text for line in store.held] == shown
