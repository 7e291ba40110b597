# SPDX-License-Identifier: Apache-2.0
"""Nodes of a network that are no switches, but cards or servers with their host, and where they stand."""

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.topology.graph import Topology

END_TIERS = ("NIC", "GPU", "server", "accelerator")
"""Tiers of ``planes``, ``rail``, ``bcube``, ``dcell`` and ``hammingmesh`` whose nodes with hosts are such."""


def are_switches(topology: Topology) -> Bools:
    """Return whether each node is a switch, bool [switches]; the others are cards, GPUs or servers with a host."""
    is_switch = np.ones(topology.switches, bool)
    for name, first, size in topology.notes.get("tiers", ()):
        if name in END_TIERS:
            is_switch[first : first + size] = topology.host_count[first : first + size] == 0
    return is_switch if is_switch.any() else ~is_switch


def are_of_hosts(topology: Topology) -> Bools:
    """Return whether each channel joins a switch with a card or server, bool [channels]."""
    is_switch = are_switches(topology)
    of_host: Bools = is_switch[topology.src] != is_switch[topology.dst]
    return of_host


def standing_with(topology: Topology) -> Ints:
    """Return the switch in whose cabinet each node stands, int64 [switches]: itself, or the first one near a server.

    Of several neighbours of a card or server that is the one with the lowest number; without one it stands with the
    first neighbour that has a place.
    """
    is_switch = are_switches(topology)
    home = np.where(is_switch, np.arange(topology.switches), -1)
    while (home < 0).any():
        placed = home[topology.dst] >= 0
        nearest = np.full(topology.switches, topology.switches)
        np.minimum.at(nearest, topology.src[placed], topology.dst[placed])
        new = (home < 0) & (nearest < topology.switches)
        if not new.any():  # a server without channels
            return np.where(home < 0, np.flatnonzero(is_switch)[0], home)
        home[new] = home[nearest[new]]
    return home
