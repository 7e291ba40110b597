# SPDX-License-Identifier: Apache-2.0
"""Protocol of the computations for all scenarios of a study; see :class:`Runs`."""

from collections.abc import Iterator
from typing import Any, Protocol

from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress


class Runs(Protocol):
    """One kind of computation for every scenario. Results in the folder are reused."""

    @property
    def task_indices(self) -> list[int]:
        """Indices of the items that are reported to the progress bar."""

    def tasks(self, bar: Progress) -> Iterator[Task | None]:
        """Calls for all missing results; None while the next call depends on one in flight.

        Calls that depend on each other have the same index, so they belong to one shard.
        """

    def columns_of(self, index: int) -> tuple[dict[str, Any], str]:
        """Columns of metrics.csv of a case, as far as known, and its errors."""

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Further files: name -> rows with equal keys."""
