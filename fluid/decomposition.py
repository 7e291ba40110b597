# SPDX-License-Identifier: Apache-2.0
"""Decomposition of throughput into capacity, utilisation, distance and stretch, and utilisation by link class.

Source: SIN section 5.4.1 (T = C * U / (<D> * AS)) and the link classes after it.
"""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology

NO_LOAD = "no flow crosses the network"
"""Why there is no decomposition."""


@dataclass(frozen=True)
class ThroughputFactors:
    """The factors of throughput = capacity * utilisation / (distance * stretch).

    throughput: flits/tick that cross the network. capacity: of all network channels, flits/tick. utilisation: used
    share of it. distance: hops of a shortest path, mean over the demand. stretch: mean hops of the flow over
    ``distance``.
    """

    throughput: float
    capacity: float
    utilisation: float
    distance: float
    stretch: float


def decomposition(problem: Problem, theta: float, load: Floats) -> ThroughputFactors:
    """The factors of a flow that serves theta * demand.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    theta : float
        Throughput.
    load : float64 [channels]
        Flits/tick, not all 0.
    """
    capacity, amount = float(problem.graph.capacity.sum()), problem.compact_demand.total
    hops = problem.volume(np.ones(problem.graph.channels))
    used, throughput = float(load.sum()), theta * amount
    distance = hops / amount
    return ThroughputFactors(throughput, capacity, used / capacity, distance, used / (theta * hops))


def link_classes(topology: Topology) -> dict[str, np.ndarray]:
    """Link class -> bool [channels]: classes by the tiers of both ends and by capacity, where these differ.

    Tiers are those of ``notes["tiers"]``. With groups (dragonfly) channels are local or global. Both directions of a
    link are in the same class. A uniform network has no classes.
    """
    names = _by_tier(topology)
    if len(np.unique(topology.capacity)) > 1:
        names = [f"{name}@{capacity:g}".lstrip() for name, capacity in zip(names, topology.capacity, strict=True)]
    every = np.array(names)
    classes = dict.fromkeys(sorted(set(names)))
    return {name: every == name for name in classes if name}


def _by_tier(topology: Topology) -> list[str]:
    """A name for each channel; '' where the topology has no tiers or groups."""
    notes = topology.notes
    if "tiers" in notes:
        tier = np.zeros(topology.switches, np.int64)
        for number, (_, first, count) in enumerate(notes["tiers"]):
            tier[first : first + count] = number
        words = [name for name, _, _ in notes["tiers"]]
        ends = np.sort(np.column_stack([tier[topology.src], tier[topology.dst]]), axis=1)
        return [f"{words[a]}-{words[b]}" for a, b in ends]
    if "group_size" in notes:
        inside = topology.src // notes["group_size"] == topology.dst // notes["group_size"]
        classes: list[str] = np.where(inside, "local", "global").tolist()
        return classes
    return [""] * topology.channels


def utilisation(topology: Topology, load: Floats) -> dict[str, float]:
    """Mean load / capacity over the channels of each class; ``""`` is the class of all channels.

    Parameters
    ----------
    topology : Topology
        The network.
    load : float64 [channels]
        Flits/tick.
    """
    use = load / topology.capacity
    every = {"": np.ones(topology.channels, bool)} | link_classes(topology)
    return {name: float(use[members].mean()) for name, members in every.items()}
