# SPDX-License-Identifier: Apache-2.0
"""Nodes of a network that are no switches, but cards or servers, the cables at them, and where they stand."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.arrays import Bools, Ints
from flitlab.models.topology.graph import Topology

BOARD = "accelerator"
"""The tier of ``hammingmesh`` whose links among themselves are traces of a board, not cables."""

END_TIERS = ("NIC", "GPU", "server", BOARD)
"""Tiers of ``planes``, ``rail``, ``bcube``, ``dcell`` and ``hammingmesh`` whose nodes are no switches."""


def are_switches(topology: Topology) -> Bools:
    """Return whether each node is a switch, bool [switches]; the others are cards, GPUs or servers."""
    return ~_are_of(topology, END_TIERS)


def _are_of(topology: Topology, tiers: tuple[str, ...]) -> Bools:
    chosen = np.zeros(topology.switches, bool)
    for name, first, size in topology.notes.get("tiers", ()):
        chosen[first : first + size] |= name in tiers
    return chosen


def are_of_hosts(topology: Topology) -> Bools:
    """Return whether each channel joins a switch with a card or server, bool [channels]."""
    is_switch = are_switches(topology)
    of_host: Bools = is_switch[topology.src] != is_switch[topology.dst]
    return of_host


def are_between_switches(topology: Topology) -> Bools:
    """Return whether each channel joins two switches, bool [channels]."""
    is_switch = are_switches(topology)
    between: Bools = is_switch[topology.src] & is_switch[topology.dst]
    return between


def are_on_boards(topology: Topology) -> Bools:
    """Return whether each channel is a trace of a board, bool [channels]."""
    on_board = _are_of(topology, (BOARD,))
    traces: Bools = on_board[topology.src] & on_board[topology.dst]
    return traces


def standing_with(topology: Topology) -> Ints:
    """Return the switch in whose cabinet each node stands, int64 [switches]: itself, or the one near a card or server.

    Of several neighbours of a card or server that is the switch with the lowest number; without one it stands with the
    first neighbour that has a place. Accelerators of a board stand together. Without switches all stand with node 0.
    """
    is_switch, nodes = are_switches(topology), topology.switches
    home = np.where(is_switch, np.arange(nodes), -1)
    while (home < 0).any():
        placed = home[topology.dst] >= 0
        nearest = np.full(nodes, nodes)
        np.minimum.at(nearest, topology.src[placed], topology.dst[placed])
        new = (home < 0) & (nearest < nodes)
        if not new.any():  # servers that no channel leads to a switch
            return np.where(home < 0, np.argmax(is_switch), home)
        home[new] = home[nearest[new]]
    traces = are_on_boards(topology)
    ends = topology.src[traces], topology.dst[traces]
    _, board = connected_components(csr_array((np.ones(len(ends[0])), ends), shape=(nodes, nodes)))
    least = np.full(nodes, nodes)
    np.minimum.at(least, board, home)
    together: Ints = least[board]
    return together
