# SPDX-License-Identifier: Apache-2.0
"""The common part of programs that are built round by round."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar

import numpy as np

from flitlab.models.application.builder import Builder, Ticks
from flitlab.models.application.collectives.choose import BEST
from flitlab.models.application.program import Program
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError


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


def choose_ranks(requested_ranks: int | None, hosts: int, allowed: Callable[[int], bool], rule: str) -> int:
    """The requested number of ranks, or the largest that a program allows on the hosts.

    Parameters
    ----------
    requested_ranks: the configured number, None: the largest.
    hosts: number of hosts.
    allowed: whether the program runs on a given number of ranks.
    rule: allowed numbers, in words after "must be".

    Raises
    ------
    SpecError: the number is not possible (key ``ranks``); the nearest ones are choices.
    """
    if requested_ranks is not None and not allowed(requested_ranks):
        raise SpecError(f"must be {rule}", "ranks", _neighbouring_choices(requested_ranks, hosts, allowed))
    if requested_ranks is not None and requested_ranks > hosts:
        raise SpecError(
            f"is more than the {hosts} hosts of the topology", "ranks", _neighbouring_choices(hosts + 1, hosts, allowed)
        )
    ranks = requested_ranks or next(_down(hosts, allowed), None)
    if ranks is None:
        raise SpecError(f"must be {rule}; no such number fits the {hosts} hosts of the topology", "ranks")
    return ranks


def _down(start: int, allowed: Callable[[int], bool]) -> Iterator[int]:
    return filter(allowed, range(start, 0, -1))


def _neighbouring_choices(requested_ranks: int, hosts: int, allowed: Callable[[int], bool]) -> list[str]:
    """The allowed number below, and the one above if there are enough hosts."""
    after = islice(filter(allowed, range(requested_ranks + 1, hosts + 1)), 1)
    return [str(ranks) for ranks in (*islice(_down(min(requested_ranks - 1, hosts), allowed), 1), *after)]


def is_power_of_two(ranks: int) -> bool:
    """Whether ranks = 2^k."""
    return ranks & (ranks - 1) == 0
