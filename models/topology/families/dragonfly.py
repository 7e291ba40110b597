# SPDX-License-Identifier: Apache-2.0
"""Dragonflies: groups, fully meshed or of two tiers, joined by global links."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.families.hyperx import clique_links
from flitlab.models.topology.families.leaf_spine import leaf_spine_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec

Arrangement = Literal["consecutive", "palmtree", "circulant"]


def group_rank(i: np.ndarray, j: np.ndarray, groups: int, arrangement: Arrangement) -> Ints:
    """Return the position, from 0, of group j in the order in which the ports of group i reach the other groups.

    Parameters
    ----------
    i, j: different groups.
    groups: number of groups.
    arrangement: arrangement of global links, as in the family.
    """
    distance = (j - i) % groups
    if arrangement == "consecutive":
        return j - (j > i)
    if arrangement == "palmtree":
        rank: Ints = distance - 1
        return rank
    folded: Ints = np.where(distance <= groups // 2, 2 * distance - 2, 2 * (groups - distance) - 1)
    return folded


def group_pairs(groups: int, degree: int) -> Ints:
    """Return pairs of groups such that each is in ``degree`` different ones, int64 [m, 2].

    Groups up to degree // 2 apart are paired, and groups // 2 apart if the degree is odd; the last group is in one pair
    less if the number of groups is odd too.
    """
    group = np.arange(groups)
    pairs = [np.column_stack([group, (group + distance) % groups]) for distance in range(1, degree // 2 + 1)]
    if degree % 2:
        near = group[: groups // 2]
        pairs.append(np.column_stack([near, near + groups // 2]))
    return np.concatenate(pairs)


def global_links(groups: int, a: int, h: int, arrangement: Arrangement) -> Ints:
    """Return links between routers of different groups, int64 [m, 2]; groups have a routers of h ports each.

    Parameters
    ----------
    groups: number of groups.
    a: routers per group.
    h: global ports per router.
    arrangement: arrangement of global links, as in the family.
    """
    links = []
    for first_port in range(0, a * h, groups - 1):
        pairs = group_pairs(groups, min(groups - 1, a * h - first_port))
        src_router, dst_router = np.concatenate([pairs, pairs[:, ::-1]]).T
        order = np.lexsort((group_rank(src_router, dst_router, groups, arrangement), src_router))
        start = np.searchsorted(src_router[order], src_router[order])
        port = np.empty_like(order)
        port[order] = first_port + np.arange(len(order)) - start
        links.append((src_router * a + port // h).reshape(2, -1).T)
    return np.concatenate(links)


@register("topology", "dragonfly")
class Dragonfly(TopologySpec):
    """Dragonfly: groups of ``a`` routers, each with p hosts, a - 1 local links and h global links.

    The routers of a group are linked to one another. Router r of a group owns its global ports r h ..
    (r + 1) h - 1, of a h in all. With the default a h + 1 groups g, each port of group i leads to another
    group, in this order by ``arrangement``: *consecutive* (also: absolute) 0, 1, 2, .. without i;
    *palmtree* (relative) i + 1, i + 2, ..; *circulant* i + 1, i - 1, i + 2, i - 2, ..; all modulo g.

    With fewer ``groups`` the ports go through the other groups in that order again and again, the t-th link
    from i to j being the t-th from j to i; where the last turn does not reach all, it is restricted to a
    circulant graph of groups. Pairs of groups so have equally many links, or numbers that differ by one.
    One port, noted as ``unwired_router``, stays free if g a h is odd.

    Defaults: h = a // 2 (at least 1) and p = h, the balanced a = 2 p = 2 h. g a routers, numbered group by
    group; g a (a - 1 + h) / 2 links; g a p hosts; diameter at most 3.
    Valid: 2 to a h + 1 groups, up to 2 * 10**7 channels.

    Example: ``topology: {kind: dragonfly, a: 4, p: 2, h: 2}``

    Example: ``topology: {kind: dragonfly, a: 4, h: 2, groups: 5, arrangement: palmtree}``

    Source: Kim, Dally, Scott and Abts, ISCA 2008, doi:10.1109/ISCA.2008.19. Arrangements: Hastings et
    al., Comparing global link arrangements for dragonfly networks, CLUSTER 2015.
    """

    a: int = Field(ge=1)
    """Routers of a group."""
    p: int | None = Field(default=None, ge=1)
    """Hosts of a router. null: as many as global links."""
    h: int | None = Field(default=None, ge=1)
    """Global links of a router. null: half of a, at least 1."""
    groups: int | None = Field(default=None, ge=2)
    """Groups. null: a h + 1, the most."""
    arrangement: Arrangement = "consecutive"
    """Order in which the global ports of a group lead to the others."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any groups, with a global link at every port that is left."""
        most = equipment.most_switches
        for a in range(2, most // 2 + 1):
            for groups in range(2, most // a + 1):
                free = equipment.links(equipment.each(a * groups))
                h = free - (a - 1)
                if h < 1 or groups > a * h + 1:
                    continue
                keys = {"kind": "dragonfly", "a": a, "h": h, "groups": groups}
                local, across = groups * a * (a - 1) // 2, groups * a * h // 2
                yield from flat(equipment, keys, a * groups, a - 1 + h, local + across)

    def graph(self) -> Topology:
        a, h = self.a, self.h or max(1, self.a // 2)
        most = a * h + 1
        groups = self.groups or most
        if groups > most:
            raise SpecError(f"more than a * h + 1; nearest {most}", key="groups")
        limit_size(groups * a * (a - 1 + h), "a")
        limit_size(groups * a * (self.p or h), "p", "hosts")
        routers = np.arange(groups * a).reshape(groups, a)
        links = np.concatenate([clique_links(routers, 1), global_links(groups, a, h, self.arrangement)])
        notes = {"groups": groups, "group_size": a}
        if groups * a * h % 2:
            notes["unwired_router"] = routers.size - 1
        topology = Topology.from_links(self.kind, routers.size, links, notes=notes)
        return topology.with_hosts(self.p or h)


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
