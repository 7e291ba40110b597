# SPDX-License-Identifier: Apache-2.0
"""BCube: a server-centric network of hypercube-like levels."""

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
    k: int = Field(ge=0, le=64)

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
