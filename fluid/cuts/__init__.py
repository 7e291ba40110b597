# SPDX-License-Identifier: Apache-2.0
"""Sparse cuts: the capacity across a cut bounds theta. One file per heuristic.

A cut is a set of switches, ``side``. Its sparsity is the capacity of the channels that leave it over the demand that
leaves it. Both directions of every bipartition count as cuts. Each cut is a certificate: price 1 on the channels that
leave ``side`` and 0 elsewhere proves a bound at least as tight.

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
"""Heuristics by name; each returns its sparsest cut, or None where it does not apply or no demand crosses."""


def all_cuts(topology: Topology, traffic: Traffic, heuristics: Collection[str] | None = None) -> list[Cut]:
    """The sparsest cut of each heuristic, in the order of HEURISTICS; empty if no demand leaves its switch.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    heuristics : collection of str or None
        Names of the heuristics; None for all.

    Raises
    ------
    FluidError
        The network is not strongly connected.
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
    """The sparsest cut; of equal ones (to 1e-9) the first."""
    least = min(cut.upper for cut in cuts)
    return next(cut for cut in cuts if cut.upper <= least * (1 + 1e-9))


__all__ = ["HEURISTICS", "Cut", "all_cuts", "best"]
