# SPDX-License-Identifier: Apache-2.0
"""The common part of programs that are built round by round."""

from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder, Ticks
from flitlab.models.application.collectives.choose import BEST
from flitlab.models.application.program import Program
from flitlab.models.application.ranks import choose_ranks
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes


class Skeleton(ApplicationSpec):
    """An iterative program: :meth:`iterate` adds one iteration.

    rule: the allowed numbers of ranks in words, whatever the other parameters.
    """

    rule: ClassVar[str] = "at least 1"

    def program(self, hosts: int) -> Program:
        return self.tuned(hosts, None)

    @property
    def asks_for_best(self) -> bool:
        return getattr(self, "algorithm", None) == BEST

    def tuned(self, hosts: int, ticks: Ticks | None) -> Program:
        ranks = choose_ranks(self.ranks, hosts, self.allows, self.requirement())
        builder = Builder(ranks, ticks)
        simulated, iterations = self.extent(ranks)
        self.prepare(builder)
        for builder.iteration in range(simulated):
            self.iterate(builder)
        notes = self.notes(ranks)
        if self.ranks is None and ranks < hosts:
            notes["ranks"] = f"{ranks} of {hosts} hosts; must be {self.requirement()}"
        return builder.build(simulated, iterations, notes)

    def allows(self, ranks: int) -> bool:
        """Whether it runs on this number of ranks."""
        return ranks >= 1

    def requirement(self) -> str:
        """The allowed numbers of ranks in words, with these parameters."""
        return self.rule

    def extent(self, ranks: int) -> tuple[int, int]:
        """The number of simulated iterations, and those of the program."""
        raise NotImplementedError

    def prepare(self, builder: Builder) -> None:
        """Add the rounds before the loop.

        Parameters
        ----------
        builder: collects the rounds.
        """

    def iterate(self, builder: Builder) -> None:
        """Add an iteration."""
        raise NotImplementedError

    def notes(self, ranks: int) -> Notes:
        """Notes for readers of the results."""
        return {}

    def time(self, operations: float) -> float:
        """Nanoseconds in which a rank executes ``operations`` floating-point operations."""
        return operations / self.gflops

    @property
    def ns_per_byte(self) -> float:
        """Nanoseconds that a reduction of doubles takes for each byte: one operation for 8 bytes."""
        return self.time(1 / 8)


def everyone(builder: Builder) -> Ints:
    """All ranks as one group: int64 [1, ranks].

    Parameters
    ----------
    builder: collects the rounds.
    """
    return np.arange(builder.ranks)[None]
