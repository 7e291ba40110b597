"""FatClique: cliques of cliques of cliques."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.dragonfly import global_links
from flitlab.models.topology.families.hyperx import clique_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import refuse_if_huge
from flitlab.models.topology.spec import TopologySpec


def clique_of_groups(groups: int, size: int, ports: int) -> Ints:
    """int64 [m, 2]: links that join every group of ``size`` switches to every other one, ``ports`` a switch.

    Pairs of groups have equally many links, or numbers that differ by one. One port stays free if all are odd in
    number. As long as every switch has a link to each other group left, it gets one: in turn s to the switch s
    places further in that group, so that no two switches are linked twice by them.
    """
    whole, rest = divmod(ports, groups - 1)
    switch = np.arange(groups * size).reshape(groups, size)
    i, j = np.triu_indices(groups, 1)
    links = [np.zeros((0, 2), np.int64)]
    for turn in range(whole):
        ahead = np.roll(switch, -turn - 1, axis=1)
        links.append(np.column_stack([switch[i].ravel(), ahead[j].ravel()]))
    if rest:
        links.append(global_links(groups, size, rest, "palmtree"))
    return np.concatenate(links)


@register("topology", "fatclique")
class FatClique(TopologySpec):
    """FatClique: switches form sub-blocks, these form blocks and these the network, all linked pairwise at each level.

    A sub-block is ``size`` switches that are all linked to one another. A block is ``sub_blocks`` of them, any two
    linked by as many links as another two, or one more, so that every switch has ``block_ports`` links to other
    sub-blocks of its block. The network is ``blocks`` of these, linked likewise by ``global_ports`` links a switch.

    size * sub_blocks * blocks switches, numbered block by block and sub-block by sub-block, of degree size - 1 +
    block_ports + global_ports; a port stays free (of a block, or of all) where their number is odd. ``notes`` count
    ``parallel_links``, which come about where a switch has more links to a level than it can have to different ones.

    Valid: ports of a level if and only if there are two or more to be linked by them; enough for every two sub-blocks
    (size * block_ports from sub_blocks - 1), and every two blocks; up to 2 * 10**7 channels.

    Example: ``topology: {kind: fatclique, size: 3, sub_blocks: 3, blocks: 4, block_ports: 2, global_ports: 1}``

    Source: Zhang, Niranjan Mysore, Supittayapornpong and Govindan, Understanding lifecycle management complexity of
    datacenter topologies, NSDI 2019, section 5. Which switches a link joins is our choice: as in a palmtree dragonfly.
    """

    size: int = Field(ge=1)
    sub_blocks: int = Field(ge=1)
    blocks: int = Field(ge=1)
    block_ports: int = Field(default=1, ge=0)
    global_ports: int = Field(default=1, ge=0)

    def graph(self) -> Topology:
        block = self.size * self.sub_blocks
        switches = block * self.blocks
        self._check("block_ports", self.block_ports, self.sub_blocks, self.size, "sub_blocks")
        self._check("global_ports", self.global_ports, self.blocks, block, "blocks")
        refuse_if_huge(switches * (self.size - 1 + self.block_ports + self.global_ports), "blocks")
        links = [clique_links(np.arange(switches).reshape(-1, self.size), 1)]
        if self.sub_blocks > 1:
            inner = clique_of_groups(self.sub_blocks, self.size, self.block_ports)
            links.append((np.arange(self.blocks)[:, None, None] * block + inner).reshape(-1, 2))
        if self.blocks > 1:
            links.append(clique_of_groups(self.blocks, block, self.global_ports))
        wired = np.concatenate(links)
        clusters = [[f"block {i}", i * block, block] for i in range(self.blocks)]
        parallel = len(wired) - len(np.unique(np.sort(wired, axis=1), axis=0))
        notes = {"clusters": clusters, "parallel_links": parallel}
        return Topology.from_links(self.kind, switches, wired, notes=notes)

    def _check(self, key: str, ports: int, groups: int, size: int, what: str) -> None:
        """Raise SpecError unless ``ports`` a switch link every two of so many groups of ``size`` switches."""
        if groups == 1 and ports and key in self.model_fields_set:
            raise SpecError(f"there is nothing to link with {what} = 1: leave this out, or give 0", key=key)
        least = -(-(groups - 1) // size)
        if groups > 1 and ports < least:
            raise SpecError(f"too few to link every two of {groups} {what}; at least {least}", key=key)
