# SPDX-License-Identifier: Apache-2.0
"""The choice of collective algorithms, as in an MPI library.

The limits are those of MPICH, on which MVAPICH2 is built: Thakur, Rabenseifner and Gropp 2005,
doi:10.1177/1094342005051521, section 4, and the defaults of MPICH's control variables where the text gives none.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    bucket,
    hierarchical,
    reduce_scatter,
    tree,
)
from flitlab.models.application.collectives.communicator import Communicator, distances
from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError


@dataclass(frozen=True)
class CollectiveAlgorithms:
    """A collective: its algorithms by name, and the choice for a number of ranks and bytes.

    size: bytes that a rank contributes; of an all-to-all, to each of the others. synchronising: no rank completes it
    before all have begun.
    """

    algorithms: dict[str, Callable[[Communicator, int], None]]
    choice: Callable[[int, int], str]
    synchronising: bool = False


def dissemination(comm: Communicator, size: int) -> None:
    """ceil(log2 p) rounds: an empty message to the member 1, 2, 4, ... after.

    Source: Hensgen, Finkel and Manber 1988, doi:10.1007/BF01379320.
    """
    for distance in distances(comm.size):
        comm.exchange(comm.members, (comm.members + distance) % comm.size, 0)


def _power(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _broadcast(ranks: int, size: int) -> str:
    if size < 12288 or ranks < 8:
        return "binomial"
    return "scatter_doubling" if size < 524288 and _power(ranks) else "van_de_geijn"


def _all_gather(ranks: int, size: int) -> str:
    if ranks * size < 524288 and _power(ranks):
        return "recursive_doubling"
    return "bruck" if ranks * size < 81920 else "ring"


def _all_to_all(ranks: int, size: int) -> str:
    if size <= 256 and ranks >= 8:
        return "bruck"
    return "scattered" if size <= 32768 else "pairwise"


BEST = "best"
"""In place of an algorithm: the one with the least time on the network, if that is known."""

COLLECTIVES = {
    "all_gather": CollectiveAlgorithms(
        {
            "recursive_doubling": all_gather.recursive_doubling,
            "bruck": all_gather.bruck,
            "ring": all_gather.ring,
            "bucket": bucket.all_gather,
            "hierarchical": hierarchical.all_gather,
        },
        _all_gather,
        synchronising=True,
    ),
    "all_reduce": CollectiveAlgorithms(
        {
            "recursive_doubling": all_reduce.recursive_doubling,
            "rabenseifner": all_reduce.rabenseifner,
            "ring": all_reduce.ring,
            "bucket": bucket.all_reduce,
            "hierarchical": hierarchical.all_reduce,
        },
        lambda ranks, size: "recursive_doubling" if size <= 2048 else "rabenseifner",
        synchronising=True,
    ),
    "all_to_all": CollectiveAlgorithms(
        {
            "bruck": all_to_all.bruck,
            "scattered": all_to_all.scattered,
            "linear": all_to_all.linear,
            "pairwise": all_to_all.pairwise,
        },
        _all_to_all,
        synchronising=True,
    ),
    "barrier": CollectiveAlgorithms(
        {"dissemination": dissemination}, lambda ranks, size: "dissemination", synchronising=True
    ),
    "broadcast": CollectiveAlgorithms(
        {
            "binomial": tree.broadcast,
            "scatter_doubling": tree.scatter_doubling,
            "van_de_geijn": tree.van_de_geijn,
        },
        _broadcast,
    ),
    "gather": CollectiveAlgorithms({"binomial": tree.gather}, lambda ranks, size: "binomial"),
    "reduce": CollectiveAlgorithms({"binomial": tree.reduce}, lambda ranks, size: "binomial"),
    "reduce_scatter": CollectiveAlgorithms(
        {
            "recursive_halving": reduce_scatter.recursive_halving,
            "pairwise": reduce_scatter.pairwise,
            "ring": reduce_scatter.ring,
            "bucket": bucket.reduce_scatter,
            "hierarchical": hierarchical.reduce_scatter,
        },
        lambda ranks, size: "recursive_halving" if size < 524288 else "pairwise",
        synchronising=True,
    ),
    "scatter": CollectiveAlgorithms({"binomial": tree.scatter}, lambda ranks, size: "binomial"),
}
"""All collectives by name."""


def collective(
    builder: Builder,
    name: str,
    groups: Ints,
    size: int = 0,
    algorithm: str | None = None,
    ns_per_byte: float = 0.0,
    label: str | None = None,
    key: str = "algorithm",
    dims: Sequence[int] = (),
    group: int | None = None,
) -> None:
    """A step in which groups of ranks run a collective.

    Parameters
    ----------
    builder: collects the rounds.
    name: key of :data:`COLLECTIVES`.
    groups: int64 [groups, ranks of a group], the root of each first.
    size: bytes that a rank contributes (scatter and broadcast: the root; all-to-all: to each other rank).
    algorithm: its name; None: by ranks and size; ``best``: least time of all groups by the builder's estimate.
    ns_per_byte: time of a reduction.
    label: name of the step; None: that of the collective.
    key: configuration key of the algorithm, for errors.
    dims: of ``bucket``, sides of the torus that the ranks of a group form, last coordinate fastest; empty: a ring.
    group: of ``hierarchical``, consecutive ranks that are close together; None: :func:`group_of`.

    Raises
    ------
    SpecError: an unknown algorithm; dims or a group that do not fit the ranks.
    """
    definition = COLLECTIVES[name]
    ranks = groups.shape[1]
    default = definition.choice(ranks, size)
    chosen = default if algorithm in (None, BEST) else algorithm
    if chosen not in definition.algorithms:
        raise SpecError(f"is no algorithm of {name}", key, [*definition.algorithms, BEST])
    if prod(dims or (ranks,)) != ranks:
        raise SpecError(f"the product must be the number of ranks, {ranks}", "dims")
    if ranks % (group or 1):
        raise SpecError(f"must divide the number of ranks, {ranks}", "group", list(map(str, divisors(ranks))))
    sides = tuple(int(side) for side in dims if side > 1) or (ranks,)

    def carry_out(chosen_algorithm: str, target: Builder) -> None:
        target.begin(label or name, chosen_algorithm, size, ranks, definition.synchronising and ranks == builder.ranks)
        communicator = Communicator(target, np.asarray(groups), ns_per_byte, sides, group or group_of(ranks))
        definition.algorithms[chosen_algorithm](communicator, size)

    if algorithm == BEST:
        key_of = (name, groups.tobytes(), groups.shape, size, ns_per_byte, sides, group)
        chosen = best_of([default, *definition.algorithms], carry_out, builder, key_of)
    carry_out(chosen, builder)


def best_of(
    algorithms: Iterable[str], carry_out: Callable[[str, Builder], None], builder: Builder, key: tuple[Hashable, ...]
) -> str:
    """The algorithm with the least estimated time; without an estimate, and on ties, the first.

    Parameters
    ----------
    algorithms: their names.
    carry_out: adds the rounds of an algorithm to a builder; raises ``SpecError`` if it does not fit the ranks.
    builder: collects the rounds.
    key: all inputs of the answer, which the builder caches.

    Returns
    -------
    Its name.
    """
    if builder.ticks is None:
        return next(iter(algorithms))
    if key not in builder.chosen:
        times: dict[str, float] = {}
        for name in dict.fromkeys(algorithms):
            trial = Builder(builder.ranks)
            try:
                carry_out(name, trial)
            except SpecError:
                continue
            times[name] = builder.ticks(trial)
        builder.chosen[key] = min(times, key=lambda name: times[name])
    return builder.chosen[key]


@cache
def group_of(ranks: int) -> int:
    """The default number of ranks of a group: the greatest divisor of their number up to its root."""
    return max(side for side in divisors(ranks) if side * side <= ranks)


def divisors(number: int) -> list[int]:
    """All divisors of a number, ascending."""
    return [side for side in range(1, number + 1) if number % side == 0]


def all_to_all_v(
    builder: Builder, groups: Ints, sizes: Ints, algorithm: str | None = None, label: str | None = None
) -> None:
    """A step in which every rank of a group sends different data to each of the others.

    Parameters
    ----------
    builder: collects the rounds.
    groups: int64 [groups, ranks of a group].
    sizes: int64 [ranks of a group, ranks of a group], bytes from member to member; empty messages are sent too.
    algorithm: ``scattered`` (the default, as in MPICH), ``linear``, ``pairwise`` or ``best``.
    label: name of the step.

    Raises
    ------
    SpecError: an unknown algorithm.
    """
    algorithms = {"scattered": all_to_all.scattered, "linear": all_to_all.linear, "pairwise": all_to_all.pairwise}
    chosen = "scattered" if algorithm in (None, BEST) else algorithm
    if chosen not in algorithms:
        raise SpecError("is no algorithm of all_to_all_v", "algorithm", [*algorithms, BEST])
    ranks = groups.shape[1]
    sent_bytes = sizes.sum(axis=1) - np.diagonal(sizes)

    def carry_out(by: str, into: Builder) -> None:
        into.begin(label or "all_to_all_v", by, int(sent_bytes.max(initial=0)), ranks, ranks == builder.ranks)
        algorithms[by](Communicator(into, np.asarray(groups)), sizes)

    if algorithm == BEST:
        chosen = best_of(algorithms, carry_out, builder, ("all_to_all_v", groups.tobytes(), sizes.tobytes()))
    carry_out(chosen, builder)
