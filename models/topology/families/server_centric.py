# SPDX-License-Identifier: Apache-2.0
"""BCube and DCell: networks whose servers relay."""

from itertools import pairwise

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "bcube")
class BCube(TopologySpec):
    """BCube(n, k): servers with k + 1 ports that relay, and k + 1 levels of n-port switches.

    Servers are the words of k + 1 digits in base n. The n servers that differ in digit l only are linked to
    the same switch of level l. A server is a switch here, with one host; the switches have none.

    n**(k + 1) servers, numbered by the value of their word (digit 0 the least), then n**k switches of level
    0, of level 1 and so on; (k + 1) n**(k + 1) links; servers have degree k + 1, switches n; servers that
    differ in h digits are 2 h channels apart, and the diameter is 2 (k + 1).
    Valid: n from 2, k from 0, up to 2 * 10**7 channels.

    Example: ``topology: {kind: bcube, n: 4, k: 1}``

    Source: Guo et al., SIGCOMM 2009, doi:10.1145/1592568.1592577.
    """

    n: int = Field(ge=2)
    """Ports of a switch, and servers at each."""
    k: int = Field(ge=0, le=64)
    """Highest level: there are k + 1 levels of switches."""

    def graph(self) -> Topology:
        digits, servers, row = self.k + 1, self.n ** (self.k + 1), self.n**self.k
        limit_size(2 * digits * servers, "k")
        server = np.arange(servers)
        links = []
        for level in range(digits):
            weight = self.n**level
            without_digit = server // (weight * self.n) * weight + server % weight
            links.append(np.column_stack([server, servers + level * row + without_digit]))
        switches = servers + digits * row
        tiers = [["server", 0, servers]]
        tiers += [[f"level {level}", servers + level * row, row] for level in range(digits)]
        topology = Topology.from_links(self.kind, switches, np.concatenate(links), notes={"tiers": tiers})
        return topology.with_hosts(np.arange(switches) < servers)


@register("topology", "dcell")
class DCell(TopologySpec):
    """DCell(n, k): n-port mini-switches, and servers with k + 1 ports that relay.

    A DCell_0 is n servers at one mini-switch. A DCell_l is t_(l-1) + 1 copies of DCell_(l-1), each with
    t_(l-1) servers; for i < j, server j - 1 of copy i is linked to server i of copy j. A server is a switch
    here, with one host; the mini-switches have none.

    t_k servers, t_0 = n and t_l = t_(l-1) (t_(l-1) + 1), numbered copy by copy at every level, then t_k / n
    mini-switches; t_k + k t_k / 2 links; servers have degree k + 1, mini-switches n. Counted in steps from
    server to server, one through a mini-switch included, servers are at most 2**(k + 1) - 1 apart.
    Valid: n from 2, k from 0, up to 2 * 10**7 channels.

    Example: ``topology: {kind: dcell, n: 4, k: 1}``

    Source: Guo et al., SIGCOMM 2008, doi:10.1145/1402958.1402968.
    """

    n: int = Field(ge=2)
    """Ports of a mini-switch, and servers at each."""
    k: int = Field(ge=0, le=8)
    """Level of recursion; servers have k + 1 ports."""

    def graph(self) -> Topology:
        sizes = [self.n]
        for _ in range(self.k):
            sizes.append(sizes[-1] * (sizes[-1] + 1))
        servers = sizes[-1]
        limit_size((self.k + 2) * servers, "k")
        server = np.arange(servers)
        links = [np.column_stack([server, servers + server // self.n])]
        for inner, whole in pairwise(sizes):
            i, j = np.triu_indices(inner + 1, 1)
            pair = np.column_stack([i * inner + j - 1, j * inner + i])
            first = np.arange(0, servers, whole)
            links.append((first[:, None, None] + pair).reshape(-1, 2))
        cells = servers // self.n
        tiers = [["server", 0, servers], ["mini-switch", servers, cells]]
        topology = Topology.from_links(
            self.kind, servers + cells, np.concatenate(links), notes={"tiers": tiers}
        )  # fmt: skip
        return topology.with_hosts(np.arange(servers + cells) < servers)
