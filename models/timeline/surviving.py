# SPDX-License-Identifier: Apache-2.0
"""The part of a network that failures leave to hosts."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


@dataclass(frozen=True, eq=False)
class SurvivingNetwork:
    """The part of a network that an epoch leaves to hosts, renumbered.

    topology: the surviving network; hosts keep their numbers. channel, switch: int64 [channels], int64 [switches], the
    numbers that its channels and switches have in the whole network.
    """

    topology: Topology
    channel: Ints
    switch: Ints


def connected_switches(topology: Topology, works: Bools) -> Bools:
    """Return the switches that every host of their subnet reaches and that reach every one, bool [switches].

    Parameters
    ----------
    topology: the network.
    works: bool [channels], the channels that count.

    Raises
    ------
    SpecError: hosts of one subnet do not reach each other.
    """
    connected = np.zeros(topology.switches, bool)
    for places in np.split(topology.host_switch, topology.subnets):
        root = int(places[0]) if len(places) else 0
        from_root, to_root = (_reachable(topology, works, root, reverse) for reverse in (False, True))
        for reached, text in ((from_root, "from switch {} to switch {}"), (to_root, "to switch {} from switch {}")):
            if (unreachable := np.sort(places[~reached[places]])).size:
                ends = map(switch_names(topology).label, (root, unreachable[0]))
                raise SpecError(f"cuts hosts off: no path is left {text.format(*ends)}", key="timeline")
        connected |= from_root & to_root
    return connected


def _reachable(topology: Topology, works: Bools, root: int, reverse: bool) -> Bools:
    """Return the switches reachable from a switch, or with ``reverse`` those that reach it, bool [switches].

    works: bool [channels], the channels that count.
    """
    src, dst = (topology.dst, topology.src) if reverse else (topology.src, topology.dst)
    reached = np.zeros(topology.switches, bool)
    reached[root] = True
    while True:
        extended = reached.copy()
        extended[dst[works & reached[src]]] = True
        if (extended == reached).all():
            return reached
        reached = extended
