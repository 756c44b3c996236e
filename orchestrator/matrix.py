"""The matrix: the story under all sixteen configurations, rule against run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator import runs, story
from orchestrator.config import Configuration, every_configuration
from orchestrator.errors import StepFailed
from orchestrator.report import report
from orchestrator.sentences import Phrase, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Runs at once: enough to keep both replicas busy, few enough to finish in order.
AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """One configuration, played.

    ``found`` is the run's report; None when it could not be played, and then
    ``failure`` says why. A cell that could not run is neither outcome.
    """

    configuration: Configuration
    found: dict[str, Any] | None = None
    failure: StepFailed | None = None

    @property
    def as_predicted(self) -> bool:
        """Whether it ran, and as the rule says."""
        return self.found is not None and self.found["as_predicted"] is True

    def as_dict(self) -> dict[str, Any]:
        """Return the cell as ``matrix --json`` prints it."""
        if self.found is not None:
            return self.found
        said = {"config": self.configuration.as_dict(), "outcome": None}
        if self.failure is None:
            return said
        return said | {
            "run": self.failure.run_id,
            "sentence": sentence(Phrase(self.failure.reason)),
            "error_id": self.failure.error_id,
        }


def as_json(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the matrix as ``matrix --json`` prints it."""
    return {
        "cells": [cell.as_dict() for cell in cells],
        "as_predicted": sum(cell.as_predicted for cell in cells),
    }


async def play_cell(configuration: Configuration) -> Cell:
    """Play the story under one configuration in a new run."""
    try:
        run = await story.play(configuration)
    except StepFailed as failure:
        return Cell(configuration, failure=failure)
    events = await runs.read(run.id)
    return Cell(configuration, report(run.id, configuration, events))


async def play_matrix(
    when_done: Callable[[Cell], None] = lambda cell: None,
    configurations: Sequence[Configuration] | None = None,
) -> list[Cell]:
    """Play every configuration, some at a time; return the cells in their order.

    Args:
        when_done: is told each cell as it finishes.
        configurations: which; all sixteen when left out.

    Raises:
        psycopg.Error: the store of runs does not answer.
    """
    free = asyncio.Semaphore(AT_ONCE)

    async def play(configuration: Configuration) -> Cell:
        async with free:
            cell = await play_cell(configuration)
        when_done(cell)
        return cell

    chosen = every_configuration() if configurations is None else configurations
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(play(each)) for each in chosen]
    except ExceptionGroup as several:
        # All runs share one database: what stopped one of them stopped them all.
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]
