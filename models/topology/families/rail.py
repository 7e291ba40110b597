# SPDX-License-Identifier: Apache-2.0
"""Rail-optimised networks of GPU servers."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.leaf_spine import leaf_spine_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


@register("topology", "rail")
class Rail(TopologySpec):
    """Rail-optimised network: GPU number i of every server of a pod is linked to the same switch, rail i of the pod.

    Each of the ``servers`` has ``gpus`` GPUs, every one a node of its own with one host and a network card: a link of
    capacity 1 to its rail. The GPUs of a server are also linked to a switch inside, with capacity ``nvlink`` (in
    multiples of a card's; null: without). ``servers_per_pod`` servers share the rails of a pod (default: all). Every
    rail of every pod is linked to each of the ``spines`` by ``multiplicity`` links; spines * multiplicity equal to
    servers_per_pod is a network without oversubscription. Without spines, in one pod, it is the *rail-only* network,
    in which other rails are reached through a server.

    S servers of G GPUs in P pods have S G GPUs, numbered server by server, then S switches inside servers, P G rails,
    pod by pod, and the spines; 2 S G links of GPUs, and P G * spines * multiplicity between switches.
    Valid: servers_per_pod divides servers; spines if there are several pods; up to 2 * 10**7 channels.

    Example: ``topology: {kind: rail, servers: 8, gpus: 4, servers_per_pod: 4, spines: 4}``

    Example: ``topology: {kind: rail, servers: 6, gpus: 4}``

    Source: NVIDIA, Doubling all2all performance with NCCL 2.12, 2022 (rail-optimised); Wang, Ghobadi et al., Rail-only,
    HOTI 2024, arXiv:2307.12169.
    """

    servers: int = Field(ge=1)
    """Servers."""
    gpus: int = Field(ge=1)
    """GPUs of a server, each with a host."""
    servers_per_pod: int | None = Field(default=None, ge=1)
    """Servers that share rails. null: all."""
    spines: int = Field(default=0, ge=0)
    """Spine switches, which join rails."""
    multiplicity: int = Field(default=1, ge=1)
    """Parallel links between a rail and a spine."""
    nvlink: float | None = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Capacity of a GPU's link inside its server; that of a card is 1. null: without."""

    def graph(self) -> Topology:
        count, per_pod = self.servers * self.gpus, self.servers_per_pod or self.servers
        limit_size(4 * count, "servers")
        if self.servers % per_pod:
            near = [k for k in range(1, self.servers + 1) if self.servers % k == 0]
            raise SpecError(f"must divide servers = {self.servers}: {', '.join(map(str, near))}", key="servers_per_pod")
        pods = self.servers // per_pod
        if pods > 1 and not self.spines:
            raise SpecError(f"{pods} pods are joined by spines only; at least 1", key="spines")
        rails = pods * self.gpus
        limit_size(4 * count + 2 * rails * self.spines * self.multiplicity, "servers")
        inner = 0 if self.nvlink is None else self.servers
        gpu = np.arange(count)
        server, place = np.divmod(gpu, self.gpus)
        rail = count + inner + server // per_pod * self.gpus + place
        inside = np.column_stack([gpu, count + server])[: count if inner else 0]
        above = count + inner + leaf_spine_links(rails, self.spines, self.multiplicity)
        links = np.concatenate([inside, np.column_stack([gpu, rail]), above])
        capacity = np.append(np.full(len(inside), self.nvlink or 1.0), np.ones(len(links) - len(inside)))
        counts = {"GPU": count, "NVSwitch": inner, "rail": rails, "spine": self.spines}
        tiers, first = [], 0
        for name, size in counts.items():
            tiers += [[name, first, size]] if size else []
            first += size
        topology = Topology.from_links(self.kind, first, links, capacity=capacity, notes={"tiers": tiers})
        return topology.with_hosts(np.arange(first) < count)
