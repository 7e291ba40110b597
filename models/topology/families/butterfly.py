# SPDX-License-Identifier: Apache-2.0
"""Butterfly: a uni-directional multistage network, whose hosts inject into its first and eject from its last stage."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "butterfly")
class Butterfly(TopologySpec):
    """k-ary n-fly: n stages of k**(n - 1) switches with k inputs and k outputs, uni-directional.

    Switch (stage i, address a) is number i * k**(n - 1) + a. Its output p leads to the switch of stage i + 1 whose
    address is a with the digit n - 2 - i to the base k set to p (digit 0 is the least). Hosts h = a k to a k + k - 1
    inject at switch (0, a) and eject at (n - 1, a). So there is one path for each pair of hosts, of n - 1 channels
    between switches, and packets cannot wait for each other in a cycle.

    Uniform traffic (``include_self: true``) loads every channel alike, so the capacity is 1. The worst permutation
    sends the packets of k**(n // 2) hosts over one channel: its capacity is 1 / k**(n // 2).

    k**n hosts, (n - 1) k**n channels.

    Valid: k from 2, n from 1, up to 2 * 10**7 channels. ``hosts`` and ``hosts_per_switch`` do not apply. Switching
    modes vct, wormhole, ideal and flow; routings minimal, ecmp, allpath, llskr, optimal and table.

    Example: ``topology: {kind: butterfly, k: 4, n: 3}``

    Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 4; ``fly`` of
    BookSim 2, github.com/booksim/booksim2.
    """

    k: int = Field(ge=2, le=4096)
    """Inputs, and outputs, of a switch."""
    n: int = Field(ge=1, le=24)
    """Stages of switches."""

    def graph(self) -> Topology:
        self.reject_other_hosts("n")
        limit_size(self.n * self.k**self.n, "n")
        k, n, row = self.k, self.n, self.k ** (self.n - 1)
        address, port = np.divmod(np.arange(k**n), k)
        arcs = []
        for stage in range(n - 1):
            digit = k ** (n - 2 - stage)
            onward = address + (port - address // digit % k) * digit
            arcs.append(np.column_stack([stage * row + address, (stage + 1) * row + onward]))
        tiers = [[f"stage {stage}", stage * row, row] for stage in range(n)]
        channels = np.concatenate(arcs) if arcs else np.zeros((0, 2), np.int64)
        topology = Topology.from_arcs(self.kind, n * row, channels, notes={"tiers": tiers})
        hosts = np.repeat([k, 0], [row, (n - 1) * row])
        return topology.with_hosts(hosts, ejection=(n - 1) * row + address)
