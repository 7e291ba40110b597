# SPDX-License-Identifier: Apache-2.0
"""FatClique: cliques of cliques of cliques."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.dragonfly import global_links
from flitlab.models.topology.families.hyperx import clique_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


def clique_of_groups(groups: int, size: int, ports: int) -> Ints:
    """Return links that join every group of ``size`` switches to every other one, int64 [m, 2], ``ports`` per switch.

    Numbers of links of two pairs of groups differ by at most one. One port stays free if all numbers are odd. In round
    r, a switch links to the switch r positions further in each other group, as long as ports remain for all groups.

    Parameters
    ----------
    groups: number of groups.
    size: switches per group.
    ports: ports of a switch for links to other groups.
    """
    whole, rest = divmod(ports, groups - 1)
    switch = np.arange(groups * size).reshape(groups, size)
    i, j = np.triu_indices(groups, 1)
    links = [np.zeros((0, 2), np.int64)]
    for offset in range(whole):
        neighbour = np.roll(switch, -offset, axis=1)
        links.append(np.column_stack([switch[i].ravel(), neighbour[j].ravel()]))
    if rest:
        links.append(global_links(groups, size, rest, "palmtree"))
    return np.concatenate(links)


@register("topology", "fatclique")
class FatClique(TopologySpec):
    """FatClique: switches form sub-blocks, these form blocks and these the network, all linked pairwise at each level.

    A sub-block is ``size`` switches that are all linked to one another. A block is ``sub_blocks`` of them, any two
    linked by as many links as another two, or one more, so that every switch has ``block_ports`` links to other
    sub-blocks of its block. The network is ``blocks`` of these, linked likewise by ``global_ports`` links a switch.
    The defaults are sub_blocks - 1 and blocks - 1: switches at the same place are all linked, as in a HyperX of extents
    [blocks, sub_blocks, size], whose diameter is 3. Large networks have fewer ports at each level.

    size * sub_blocks * blocks switches, numbered block by block and sub-block by sub-block, of degree size - 1 +
    block_ports + global_ports; a port stays free (of a block, or of all) where their number is odd. ``notes`` count
    ``parallel_links``, which come about where a switch has more links to a level than it can have to different ones.

    Valid: enough ports for every two sub-blocks (size * block_ports from sub_blocks - 1) and every two blocks, and none
    where there is one of these only; up to 2 * 10**7 channels.

    Example: ``topology: {kind: fatclique, size: 3, sub_blocks: 3, blocks: 4, block_ports: 2, global_ports: 1}``

    Source: Zhang, Niranjan Mysore, Supittayapornpong and Govindan, Understanding lifecycle management complexity of
    datacenter topologies, NSDI 2019. Which switches a link joins where ports are fewer is our choice: as in a palmtree
    dragonfly.
    """

    size: int = Field(ge=1)
    """Switches of a sub-block."""
    sub_blocks: int = Field(ge=1)
    """Sub-blocks of a block."""
    blocks: int = Field(ge=1)
    """Blocks."""
    block_ports: int | None = Field(default=None, ge=0)
    """Links of a switch to other sub-blocks of its block. null: sub_blocks - 1."""
    global_ports: int | None = Field(default=None, ge=0)
    """Links of a switch to other blocks. null: blocks - 1."""

    def graph(self) -> Topology:
        block = self.size * self.sub_blocks
        switches = block * self.blocks
        block_ports = self._ports("block_ports", self.sub_blocks, self.size, "sub_blocks")
        global_ports = self._ports("global_ports", self.blocks, block, "blocks")
        limit_size(switches * (self.size - 1 + block_ports + global_ports), "blocks")
        links = [clique_links(np.arange(switches).reshape(-1, self.size), 1)]
        if self.sub_blocks > 1:
            inner = clique_of_groups(self.sub_blocks, self.size, block_ports)
            links.append((np.arange(self.blocks)[:, None, None] * block + inner).reshape(-1, 2))
        if self.blocks > 1:
            links.append(clique_of_groups(self.blocks, block, global_ports))
        wired = np.concatenate(links)
        clusters = [[f"block {i}", i * block, block] for i in range(self.blocks)]
        parallel = len(wired) - len(np.unique(np.sort(wired, axis=1), axis=0))
        notes = {"clusters": clusters, "parallel_links": parallel}
        return Topology.from_links(self.kind, switches, wired, notes=notes)

    def _ports(self, key: str, groups: int, size: int, what: str) -> int:
        """Ports of a switch that link it to other groups; raises SpecError if they cannot link every two groups."""
        port_count = getattr(self, key)
        ports: int = groups - 1 if port_count is None else port_count
        if groups == 1 and ports:
            raise SpecError(f"there is nothing to link with {what} = 1: leave this out, or give 0", key=key)
        least = -(-(groups - 1) // size)
        if ports < least:
            raise SpecError(f"too few to link every two of {groups} {what}; at least {least}", key=key)
        return ports
