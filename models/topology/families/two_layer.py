# SPDX-License-Identifier: Apache-2.0
"""Two-layer random graphs: Jellyfish with part of the links kept inside pods."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly, first_connected, random_pairs, wireable


@register("topology", "two_layer")
class TwoLayer(TopologySpec):
    """Jellyfish in pods: ``local_fraction`` of the links lie inside the pods, the others between them.

    ``pods`` pods (containers) of ``switches_per_pod`` switches of ``ports`` ports, numbered pod by pod;
    ``hosts_total`` hosts are spread evenly and links use the other ports. Or, without these two,
    ``degree`` links at every switch. Of the network ports of a pod, local_fraction (rounded to switches as
    evenly as whole ports allow) are wired at random inside it, the others at random to other pods. Simple and
    connected. If the number of local ports of a pod is odd, one goes to the other pods instead; a port stays
    free if the number of those is odd, or if all other pods together have fewer of them.

    The switches of a k-port fat tree: pods k, switches_per_pod 5k/4, ports k; it has 0.5 (1 + 1/k) of its
    links inside pods. ``notes`` has local_links, global_links and free_ports; local_links / (both) is the fraction reached.

    Valid: local_fraction in [0, 1), at most switches_per_pod - 1 local links at a switch.

    Example: ``topology: {kind: two_layer, pods: 6, switches_per_pod: 8, ports: 6, hosts_total: 72, local_fraction: 0.5, seed: 1}``

    Example: ``topology: {kind: two_layer, pods: 4, switches_per_pod: 8, degree: 6, local_fraction: 0.6, seed: 1}``

    Source: SIN section 6.5.3, Fig. 6.6.
    """  # noqa: E501

    pods: int = Field(ge=2)
    """Pods."""
    switches_per_pod: int = Field(ge=1)
    """Switches of a pod."""
    ports: int | None = Field(default=None, ge=1)
    """Ports of a switch, for links and hosts."""
    hosts_total: int | None = Field(default=None, ge=1)
    """Hosts in all, spread evenly."""
    degree: int | None = Field(default=None, ge=1)
    """Links of every switch, in place of ports and hosts."""
    local_fraction: float = Field(ge=0, lt=1)
    """Part of the links that lie inside pods."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        n = self.pods * self.switches_per_pod
        limit_random_size(n * (self.degree or self.ports or 1), "pods")
        hosts, degrees = self._ports_of_each(n)
        pod = np.arange(n) // self.switches_per_pod
        local, outward = self._split(degrees, pod)
        notes = {
            "local_links": int(local.sum()) // 2,
            "global_links": int(outward.sum()) // 2,
            "free_ports": int((degrees - local - outward).sum()),
        }
        rng = np.random.default_rng(self.seed)

        def draw() -> Topology | None:
            layers = [random_pairs(local * (pod == p), False, rng, draws=3) for p in range(self.pods)]
            layers.append(random_pairs(outward, False, rng, groups=pod, draws=3))
            drawn = [layer for layer in layers if layer is not None]
            if len(drawn) < len(layers):
                return None
            return Topology.from_links(self.kind, n, np.concatenate(drawn), notes=notes)

        topology = first_connected(draw, "local_fraction")
        return topology if hosts is None else topology.with_hosts(hosts)

    def _ports_of_each(self, n: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Hosts (None: as the common keys say) and links of every switch, int64 [n] each."""
        if self.degree is not None:
            if self.ports is not None or self.hosts_total is not None:
                raise SpecError("give either degree, or ports and hosts_total", key="degree")
            return None, np.full(n, self.degree)
        if self.ports is None or self.hosts_total is None:
            missing = "degree" if self.ports is None and self.hosts_total is None else "ports and hosts_total"
            raise SpecError(f"{missing} missing: give either degree, or ports and hosts_total")
        self.reject_other_hosts("hosts_total")
        hosts = evenly(self.hosts_total, n)
        if hosts.max() >= self.ports:
            raise SpecError(f"leaves switches without links; at most {n * (self.ports - 1)}", key="hosts_total")
        return hosts, self.ports - hosts

    def _split(self, degrees: Ints, pod: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Local and outward links of every switch, int64 [switches] each."""
        local = np.zeros_like(degrees)
        for p in range(self.pods):
            own = np.flatnonzero(pod == p)
            # rounding the running sum keeps the fraction of the pod and is within one port at every switch
            running = np.append(0, np.cumsum(degrees[own])) * self.local_fraction
            local[own] = np.diff(np.floor(running + 0.5).astype(int))
            if local[own].sum() % 2:
                local[own[local[own].argmax()]] -= 1
        most = int(local.max())
        if most >= self.switches_per_pod:
            limit = (self.switches_per_pod - 1) / int(degrees.max())
            message = f"{most} local links at a switch of a pod of {self.switches_per_pod}; at most {limit:.4g}"
            raise SpecError(message, key="local_fraction")
        outward = wireable(degrees - local)
        of_pod = np.bincount(pod, outward).astype(int)
        largest = int(of_pod.argmax())
        for _ in range(2 * of_pod[largest] - of_pod.sum()):  # ports for which the other pods have no partner
            outward[np.where(pod == largest, outward, -1).argmax()] -= 1
        return local, outward
