# SPDX-License-Identifier: Apache-2.0
"""Dragonfly+ (Megafly): dragonflies whose groups are leaf-spine networks."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.dragonfly import Arrangement, global_links
from flitlab.models.topology.families.leaf_spine import leaf_spine_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "dragonfly_plus", aliases=("dragonfly+", "megafly"))
class DragonflyPlus(TopologySpec):
    """Dragonfly+, also called Megafly: groups of leaf and spine switches, whose spines are joined by global links.

    Every leaf of a group is linked to every spine of it and has p hosts; every spine has h global links and no hosts.
    The default s h + 1 ``groups`` (of s ``spines``) are linked pairwise once; with fewer, and for ``arrangement``, the
    rules are those of ``dragonfly``, the spines taking the place of its routers.

    Defaults: leaves = spines, and h = p = spines, so that switches have 2 h ports. g groups of l leaves and s spines
    have g (l + s) switches, numbered group by group, leaves first; g (l s + s h / 2) links; g l p hosts. Leaves are at
    most 3 hops apart, over one global link; spines at most 5.
    Valid: 2 to s h + 1 groups, up to 2 * 10**7 channels.

    Example: ``topology: {kind: dragonfly_plus, spines: 2}``

    Example: ``topology: {kind: dragonfly_plus, leaves: 4, spines: 4, p: 2, h: 2, groups: 5}``

    Source: Shpiner et al., Dragonfly+, HiPINEB 2017, doi:10.1109/HiPINEB.2017.11; Flajslik, Borch and Parker, Megafly,
    ISC 2018, doi:10.1007/978-3-319-92040-5_15.
    """

    spines: int = Field(ge=1)
    """Spine switches of a group."""
    leaves: int | None = Field(default=None, ge=1)
    """Leaf switches of a group. null: as many as spines."""
    p: int | None = Field(default=None, ge=1)
    """Hosts of a leaf switch. null: as many as spines."""
    h: int | None = Field(default=None, ge=1)
    """Global links of a spine switch. null: as many as spines."""
    groups: int | None = Field(default=None, ge=2)
    """Groups. null: spines h + 1, the most."""
    arrangement: Arrangement = "palmtree"
    """Order in which the global ports of a group lead to the others."""

    def graph(self) -> Topology:
        spines, h = self.spines, self.h or self.spines
        leaves, p = self.leaves or spines, self.p or spines
        most = spines * h + 1
        groups = self.groups or most
        if groups > most:
            raise SpecError(f"more than spines * h + 1; nearest {most}", key="groups")
        limit_size(groups * spines * (2 * leaves + h), "spines")
        limit_size(groups * leaves * p, "p", "hosts")
        size = leaves + spines
        first = np.arange(groups)[:, None, None] * size
        local = (first + leaf_spine_links(leaves, spines, 1)).reshape(-1, 2)
        group, spine = np.divmod(global_links(groups, spines, h, self.arrangement), spines)
        notes = {"groups": groups, "group_size": size}
        links = np.concatenate([local, group * size + leaves + spine])
        topology = Topology.from_links(self.kind, groups * size, links, notes=notes)
        return topology.with_hosts(p * (np.arange(groups * size) % size < leaves))
