# SPDX-License-Identifier: Apache-2.0
"""Leaf-spine networks: folded Clos networks of two tiers."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Cut, Equipment
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size, listed
from flitlab.models.topology.spec import TopologySpec


def leaf_spine_links(leaves: int, spines: int, multiplicity: int) -> Ints:
    """Return parallel links from every leaf 0, 1, .. to every spine ``leaves``, ``leaves`` + 1, .., int64 [m, 2].

    Parameters
    ----------
    leaves, spines: number of switches of each tier.
    multiplicity: parallel links of a leaf and a spine.
    """
    leaf, spine = np.indices((leaves, spines)).reshape(2, -1)
    return np.repeat(np.column_stack([leaf, leaves + spine]), multiplicity, axis=0)


@register("topology", "leaf_spine", aliases=("spine_leaf",))
class LeafSpine(TopologySpec):
    """Leaf-spine network: every leaf switch, which has hosts, is linked to every spine switch, which has none.

    ``multiplicity`` parallel links join a leaf to a spine. ``hosts_per_leaf`` is given, or follows from
    ``oversubscription``, the hosts' capacity over that of the links of a leaf (default 1): multiplicity * spines *
    oversubscription, times the common key ``capacity`` of the links over ``host_capacity``. The common key ``hosts``
    may stand in place of both. ``notes`` tell the oversubscription of the leaf with most hosts. At 1, all-to-all
    traffic and every permutation reach the full rate of hosts.

    leaves + spines switches, numbered leaves first; leaves * spines * multiplicity links; diameter 2.
    Valid: up to 2 * 10**7 channels and hosts.

    Example: ``topology: {kind: leaf_spine, leaves: 8, spines: 4, hosts_per_leaf: 8}``

    Example: ``topology: {kind: leaf_spine, leaves: 6, spines: 2, multiplicity: 2, oversubscription: 3}``

    Source: Alizadeh and Edsall, On the data path performance of leaf-spine datacenter fabrics, HOTI 2013,
    doi:10.1109/HOTI.2013.23.
    """

    leaves: int = Field(ge=1)
    """Leaf switches."""
    spines: int = Field(ge=1)
    """Spine switches."""
    hosts_per_leaf: int | None = Field(default=None, ge=1)
    """Hosts of a leaf switch. null: by oversubscription."""
    multiplicity: int = Field(default=1, ge=1)
    """Parallel links between a leaf and a spine."""
    oversubscription: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Capacity of a leaf's hosts over that of its links. null: 1, or by the hosts."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any number of leaves that serves all hosts, spines and parallel links, up to full rate."""
        hosts, most = equipment.hosts, equipment.most_switches
        for leaves in range(2, min(hosts, most, equipment.most_links) + 1):
            each = equipment.each(leaves)
            free = min(equipment.links(each), each * equipment.split)
            for spines in range(1, min(free, most - leaves) + 1):
                multiplicity = min(free // spines, equipment.most_links // leaves)
                if multiplicity:
                    up = spines * multiplicity
                    keys = {"kind": "leaf_spine", "leaves": leaves, "spines": spines, "multiplicity": multiplicity}
                    placed = keys | equipment.keys(leaves + spines, leaves)
                    if "hosts_per_switch" in placed:
                        placed = keys | {"hosts_per_leaf": each}
                    cut = Cut(each, hosts // leaves, up, matched=True)
                    degree = max(up, leaves * multiplicity)
                    yield Candidate(placed, leaves + spines, leaves * up, leaves, degree, multiplicity, spines, (cut,))

    def graph(self) -> Topology:
        leaves, spines = self.leaves, self.spines
        limit_size(2 * leaves * spines * self.multiplicity, "leaves")
        per_leaf = self._hosts_per_leaf()
        limit_size(leaves * per_leaf, "hosts_per_leaf", "hosts")
        tiers = [["leaf", 0, leaves], ["spine", leaves, spines]]
        notes = {"tiers": tiers, "oversubscription": float(per_leaf / self._hosts_served())}
        links = leaf_spine_links(leaves, spines, self.multiplicity)
        topology = Topology.from_links(self.kind, leaves + spines, links, notes=notes)
        return topology.with_hosts(per_leaf * (np.arange(leaves + spines) < leaves))

    def _hosts_served(self) -> Fraction:
        """Hosts of a leaf that its links to the spines serve at full rate."""
        rate = 1 if self.host_capacity == float("inf") else Fraction(repr(self.host_capacity))
        return self.spines * self.multiplicity * Fraction(repr(self.capacity)) / rate

    def _hosts_per_leaf(self) -> int:
        if self.hosts_per_leaf is not None and self.oversubscription is not None:
            raise SpecError("give either hosts_per_leaf or oversubscription", key="oversubscription")
        if self.hosts_per_leaf is not None:
            self.reject_other_hosts("hosts_per_leaf")
            return self.hosts_per_leaf
        if self.hosts is not None and self.oversubscription is None:
            return max(1, max(self.hosts if isinstance(self.hosts, list) else self.hosts.values(), default=1))
        hosts = Fraction(repr(self.oversubscription or 1.0)) * self._hosts_served()
        if hosts.denominator > 1:
            near = listed(sorted({max(1, int(hosts)), int(hosts) + 1}))
            problem = f"makes {float(hosts):g} hosts per leaf; in place of it, nearest hosts_per_leaf {near}"
            raise SpecError(problem, key="oversubscription")
        return int(hosts)
