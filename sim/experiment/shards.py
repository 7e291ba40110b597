# SPDX-License-Identifier: Apache-2.0
"""Shards: parts of a study for parallel runs, in one folder or in several."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flitlab.sim.experiment.pool import Task


@dataclass(frozen=True)
class Shard:
    """Every ``count``-th task of each kind, from the ``index``-th on (1, 2, ..., count)."""

    index: int = 1
    count: int = 1

    def takes(self, task_index: int) -> bool:
        """Whether the task with an index (from 0) belongs to the shard."""
        return task_index % self.count == self.index - 1

    def of(self, tasks: Iterable[Task | None]) -> Iterator[Task | None]:
        """The tasks of the shard."""
        return (task for task in tasks if task is None or self.takes(task.task_index))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
