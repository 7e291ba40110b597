# SPDX-License-Identifier: Apache-2.0
"""What every kind of question about the scenarios of a study has in common; see :class:`Runs`."""

from collections.abc import Iterator
from typing import Any, Protocol

from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress


class Runs(Protocol):
    """One kind of question, asked of every scenario. What the folder of the run holds is not computed again."""

    @property
    def places(self) -> list[int]:
        """The places of what it tells the progress bar of, one for each time, at most."""

    def tasks(self, bar: Progress) -> Iterator[Task | None]:
        """Calls for everything that is missing; None where the next call depends on one that is under way.

        Calls that depend on what others return have the same place, so that one shard has them all.
        """

    def columns_of(self, index: int) -> tuple[dict[str, Any], str]:
        """Columns of metrics.csv for the case of this index, as far as they are known; and what went wrong, or ''."""

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Further files to write: name -> rows, all with the same keys."""
