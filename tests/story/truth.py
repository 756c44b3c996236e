"""The truth table, written out by hand: what each of the sixteen cells must be."""

from __future__ import annotations

from itertools import product

# sessions, continuity, affinity: path, outcome, events seen, sessions held
ROWS = {
    ("memory", "off", "off"): ("BA", "asks", [1, 1], 2),
    ("memory", "off", "on"): ("BB", "asks", [1, 1], 2),
    ("memory", "on", "off"): ("BA", "asks", [1, 1], 2),
    ("memory", "on", "on"): ("BB", "answers", [1, 5], 1),
    ("shared", "off", "off"): ("BA", "asks", [1, 1], 2),
    ("shared", "off", "on"): ("BB", "asks", [1, 1], 2),
    ("shared", "on", "off"): ("BA", "answers", [1, 5], 1),
    ("shared", "on", "on"): ("BB", "answers", [1, 5], 1),
}
CELLS = [(*key, output) for key, output in product(ROWS, ("per-run", "per-event"))]
