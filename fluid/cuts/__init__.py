# SPDX-License-Identifier: Apache-2.0
"""Sparse cuts: what may cross between two parts of a network bounds theta. One file per heuristic.

A cut is a set of switches, ``side``; its sparsity is the capacity from there to the other switches over the demand
from there to them. Both directions of every bipartition are looked at, as two cuts. Each cut is a certificate as
well: length 1 on the channels that leave ``side`` and 0 elsewhere proves at least its sparsity.

Source: MUT section III-B; SIN appendix D.
"""

from collections.abc import Collection

from flitlab.fluid.cuts import bisection, brute_force, eigenvector, expanding, one_node, two_node
from flitlab.fluid.cuts.cut import Cut, CutNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.traffic import Traffic

HEURISTICS = {
    "brute_force": brute_force.search,
    "one_node": one_node.search,
    "two_node": two_node.search,
    "expanding": expanding.search,
    "eigenvector": eigenvector.search,
    "bisection": bisection.search,
}
"""By name; each gives the sparsest cut that it finds, or None where it does not apply or no demand crosses."""


def all_cuts(topology: Topology, traffic: Traffic, heuristics: Collection[str] | None = None) -> list[Cut]:
    """The sparsest cut that each heuristic finds, in the order of HEURISTICS; none if no demand leaves its switch.

    heuristics: names of those that are tried; None for all.

    Raises :class:`~flitlab.fluid.problem.FluidError` unless the network is strongly connected.
    """
    if (pair := topology.unreachable_pair()) is not None:
        reason = "cuts are looked for in strongly connected networks"
        u, v = map(switch_names(topology).label, pair)
        raise FluidError(f"no path leads from switch {u} to switch {v}: {reason}")
    network = CutNetwork.of(topology, traffic)
    tried = HEURISTICS if heuristics is None else [name for name in HEURISTICS if name in heuristics]
    sides = ((name, HEURISTICS[name](network)) for name in tried)
    return [network.cut(name, side) for name, side in sides if side is not None]


def best(cuts: list[Cut]) -> Cut:
    """The sparsest; of equal ones (to 1e-9) the first."""
    least = min(cut.upper for cut in cuts)
    return next(cut for cut in cuts if cut.upper <= least * (1 + 1e-9))


__all__ = ["HEURISTICS", "Cut", "all_cuts", "best"]
