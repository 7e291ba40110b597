# SPDX-License-Identifier: Apache-2.0
"""Folded Clos networks of three tiers, with any oversubscription, and fat trees of identical switches."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Cut, Equipment
from flitlab.models.topology.families.leaf_spine import leaf_spine_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "clos", aliases=("folded_clos",))
class Clos(TopologySpec):
    """Folded Clos network of three tiers: pods of leaf and aggregation switches, joined by core switches.

    In each of the ``pods`` every one of ``leaves`` leaf switches is linked to every one of ``aggregations`` aggregation
    switches, by ``multiplicity`` parallel links. The ``cores`` form as many groups as a pod has aggregation switches;
    aggregation switch j of every pod is linked to every core of group j, by ``core_multiplicity`` parallel links. So a
    leaf has aggregations * multiplicity links for its ``hosts_per_leaf`` hosts, and an aggregation switch leaves *
    multiplicity down and cores / aggregations * core_multiplicity up. k pods of k / 2 leaves and k / 2 aggregation
    switches, (k / 2)**2 cores and k / 2 hosts per leaf are the fat tree of k ports.

    pods (leaves + aggregations) + cores switches, numbered leaves (pod by pod), aggregation switches (pod by pod),
    cores; diameter 4, or 2 with a single pod. ``notes`` tell the oversubscription of leaves and of pods, hosts over
    links of capacity 1.
    Valid: ``cores`` a multiple of ``aggregations``; up to 2 * 10**7 channels and hosts.

    Example: ``topology: {kind: clos, pods: 4, leaves: 3, aggregations: 2, cores: 4, hosts_per_leaf: 4}``

    Source: Clos, Bell System Technical Journal 32, 1953, doi:10.1002/j.1538-7305.1953.tb01433.x; Al-Fares, Loukissas
    and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967, for the wiring of the core.
    """

    pods: int = Field(ge=1)
    """Pods."""
    leaves: int = Field(ge=1)
    """Leaf switches of a pod."""
    aggregations: int = Field(ge=1)
    """Aggregation switches of a pod."""
    cores: int = Field(ge=1)
    """Core switches, a multiple of the aggregation switches of a pod."""
    hosts_per_leaf: int = Field(ge=1)
    """Hosts of a leaf switch."""
    multiplicity: int = Field(default=1, ge=1)
    """Parallel links between a leaf and an aggregation switch."""
    core_multiplicity: int = Field(default=1, ge=1)
    """Parallel links between an aggregation and a core switch."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Leaves that use all ports, pods that serve all hosts, and the core at 1, 1/2, 1/3 and 1/4 of full rate."""
        hosts, ports = equipment.hosts, equipment.most_links
        for each in range(equipment.ports // 2, equipment.ports):
            up = min(equipment.links(each), each * equipment.split)
            leaves_needed = -(-hosts // each)
            for pods in range(2, min(ports, leaves_needed) + 1):
                leaves = -(-leaves_needed // pods)
                if leaves < 2 or equipment.each(pods * leaves) != each or pods * leaves > hosts:
                    continue
                for multiplicity in range(1, up + 1):
                    if up % multiplicity == 0 and leaves * multiplicity < ports:
                        yield from cls._with_cores(equipment, pods, leaves, up // multiplicity, multiplicity)

    @classmethod
    def _with_cores(
        cls, equipment: Equipment, pods: int, leaves: int, aggregations: int, multiplicity: int
    ) -> Iterator[Candidate]:
        """Networks of the same pods, with different cores."""
        hosts, ports, down = equipment.hosts, equipment.most_links, leaves * multiplicity
        total, each, sizes = pods * leaves, equipment.each(pods * leaves), set()
        for share in (1, 2, 3, 4):
            up = min(-(-down // share), ports - down)
            parallel = min(ports // pods, up)
            group = up // parallel if parallel else 0
            switches = pods * (leaves + aggregations) + group * aggregations
            if not group or (group, parallel) in sizes or switches > equipment.most_switches:
                continue
            sizes.add((group, parallel))
            keys = {
                "kind": "clos", "pods": pods, "leaves": leaves, "aggregations": aggregations,
                "cores": group * aggregations, "hosts_per_leaf": each, "multiplicity": multiplicity,
                "core_multiplicity": parallel,
            }  # fmt: skip
            of_pod = group * parallel * aggregations
            more = hosts % total
            pod_hosts = [
                sum(hosts // total + (leaf < more) for leaf in range(p * leaves, (p + 1) * leaves)) for p in range(pods)
            ]
            cuts = (
                Cut(each, hosts // total, aggregations * multiplicity, matched=True),
                Cut(max(pod_hosts), min(pod_hosts), of_pod),
            )
            links = total * aggregations * multiplicity + pods * of_pod
            degree = max(down + group * parallel, aggregations * multiplicity, pods * parallel)
            yield Candidate(
                keys if not more else {key: value for key, value in keys.items() if key != "hosts_per_leaf"}
                | {"hosts_per_leaf": 1} | equipment.keys(switches, total),
                switches, links, total, degree, 1, aggregations, cuts,
            )  # fmt: skip

    def graph(self) -> Topology:
        pods, leaves, aggregations = self.pods, self.leaves, self.aggregations
        if self.cores % aggregations:
            below = self.cores - self.cores % aggregations
            near = ", ".join(str(n) for n in (below, below + aggregations) if n)
            raise SpecError(f"must be a multiple of aggregations = {aggregations}; nearest {near}", key="cores")
        group = self.cores // aggregations
        limit_size(2 * pods * aggregations * (leaves * self.multiplicity + group * self.core_multiplicity), "pods")
        limit_size(pods * leaves * self.hosts_per_leaf, "hosts_per_leaf", "hosts")
        first, last = pods * leaves, pods * (leaves + aggregations)
        inside = leaf_spine_links(leaves, aggregations, self.multiplicity)
        pod = np.arange(pods)[:, None]
        leaf = pod * leaves + inside[:, 0]
        aggregation = first + pod * aggregations + inside[:, 1] - leaves
        lower = np.stack([leaf, aggregation], axis=-1).reshape(-1, 2)
        member, core = np.indices((pods * aggregations, group)).reshape(2, -1)
        above = np.column_stack([first + member, last + member % aggregations * group + core])
        links = np.concatenate([lower, np.repeat(above, self.core_multiplicity, axis=0)])
        tiers = [["leaf", 0, first], ["aggregation", first, last - first], ["core", last, self.cores]]
        notes = {
            "tiers": tiers,
            "oversubscription": self.hosts_per_leaf / (aggregations * self.multiplicity),
            "pod_oversubscription": leaves * self.hosts_per_leaf / (self.cores * self.core_multiplicity),
        }
        topology = Topology.from_links(self.kind, last + self.cores, links, notes=notes)
        return topology.with_hosts(self.hosts_per_leaf * (np.arange(topology.switches) < first))


@register("topology", "fat_tree")
class FatTree(TopologySpec):
    """Three-tier fat tree (folded Clos network) of k-port switches.

    k pods of k/2 edge and k/2 aggregation switches, every edge switch linked to every aggregation switch of
    its pod; (k/2)**2 core switches. Aggregation switch j of each pod is linked to the core switches
    j k/2 .. (j + 1) k/2 - 1, so that every core switch reaches every pod by one link. Each edge switch has
    k/2 hosts; the others have none.

    5 k**2 / 4 switches, numbered edge (pod by pod), aggregation (pod by pod), core; k**3 / 2 links;
    k**3 / 4 hosts; diameter 4. Valid: k even, up to 2 * 10**7 channels.

    Example: ``topology: {kind: fat_tree, k: 8}``

    Source: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967.
    """

    k: int = Field(ge=2)
    """Ports of a switch, an even number."""

    def graph(self) -> Topology:
        if self.k % 2:
            raise SpecError(f"must be even; nearest {self.k - 1}, {self.k + 1}", key="k")
        limit_size(self.k**3, "k")
        pods, half = self.k, self.k // 2
        edge = np.arange(pods * half).reshape(pods, half)
        aggregation = edge + edge.size
        core = np.arange(half * half).reshape(half, half) + 2 * edge.size
        inside = np.broadcast_arrays(edge[:, :, None], aggregation[:, None, :])
        above = np.broadcast_arrays(aggregation[:, :, None], core[None, :, :])
        links = np.concatenate([np.stack(ends, axis=-1).reshape(-1, 2) for ends in (inside, above)])
        switches = 2 * edge.size + core.size
        tiers = [
            ["edge", 0, edge.size],
            ["aggregation", edge.size, edge.size],
            ["core", 2 * edge.size, core.size],
        ]
        topology = Topology.from_links(self.kind, switches, links, notes={"tiers": tiers})
        return topology.with_hosts(half * (np.arange(switches) < edge.size))
