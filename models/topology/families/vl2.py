# SPDX-License-Identifier: Apache-2.0
"""VL2: a Clos network of aggregation and core switches above top-of-rack switches."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly, first_connected, random_links


@register("topology", "vl2")
class Vl2(TopologySpec):
    """VL2: racks of hosts, and a complete bipartite graph of aggregation and core switches above them.

    ``di`` aggregation switches of ``da`` ports, da / 2 core switches of di ports, one link between every
    two of them; da di / 4 top-of-rack switches (ToRs) with ``servers_per_tor`` hosts each and two links to
    consecutive aggregation switches (cyclically; ToR t starts at t, in an incomplete last turn at 2 t, so
    that each has da / 2). Links between switches have capacity ``line_speed`` (which the common key ``capacity``
    multiplies), those of hosts have 1.

    da di / 4 + di + da / 2 switches, numbered ToRs, aggregation, core; da di links; 5 da di hosts by default.
    Valid: da even, and a multiple of 4 where di is odd; di from 2; up to 2 * 10**7 channels.

    Example: ``topology: {kind: vl2, da: 8, di: 6}``

    Source: Greenberg et al., SIGCOMM 2009, doi:10.1145/1592568.1592576. SIN section 5.5.
    """

    da: int = Field(ge=2)
    """Ports of an aggregation switch."""
    di: int = Field(ge=2)
    """Aggregation switches, and ports of a core switch."""
    servers_per_tor: int = Field(default=20, ge=1)
    """Hosts of a top-of-rack switch."""
    line_speed: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    """Capacity of the links between switches."""

    def graph(self) -> Topology:
        tors = self.full_tors()
        tor = np.arange(tors)
        whole_turns = tors // self.di * self.di
        first = np.where(tor < whole_turns, tor, 2 * (tor - whole_turns))
        uplinks = [np.column_stack([tor, tors + (first + i) % self.di]) for i in range(2)]
        aggregation, core = np.indices((self.di, self.da // 2)).reshape(2, -1)
        fabric = np.column_stack([tors + aggregation, tors + self.di + core])
        return self.network(tors, np.concatenate([*uplinks, fabric]))

    def full_tors(self) -> int:
        """ToRs that a VL2 of this equipment serves at full throughput; raises SpecError if it is none."""
        if self.da % 2:
            raise SpecError(f"must be even; nearest {self.da - 1}, {self.da + 1}", key="da")
        if self.da * self.di % 4:
            near = f"{self.di - 1}, {self.di + 1}"
            raise SpecError(f"must be even where da is no multiple of 4; nearest {near}", key="di")
        limit_size(2 * self.da * self.di, "da")
        return self.da * self.di // 4

    def network(self, tors: int, links: np.ndarray) -> Topology:
        """ToRs, aggregation and core switches with these links, and the hosts of the ToRs.

        Parameters
        ----------
        tors: number of ToRs.
        links: int64 [m, 2].
        """
        limit_size(tors * self.servers_per_tor, "servers_per_tor", "hosts")
        core = self.da // 2
        tiers = [["ToR", 0, tors], ["aggregation", tors, self.di], ["core", tors + self.di, core]]
        switches = tors + self.di + core
        topology = Topology.from_links(
            self.kind, switches, links, capacity=self.line_speed, notes={"tiers": tiers}
        )  # fmt: skip
        return topology.with_hosts(self.servers_per_tor * (np.arange(switches) < tors))


@register("topology", "vl2_rewired")
class Vl2Rewired(Vl2):
    """The switches of VL2 wired at random, so that they serve more racks.

    ``di`` aggregation switches of ``da`` ports, da / 2 core switches of di ports and ``tors`` top-of-rack
    switches (ToRs; default: the da di / 4 of VL2) with ``servers_per_tor`` hosts and two uplinks. The uplinks
    are spread over aggregation and core switches in proportion to their ports: two thirds (rounded) to
    aggregation, one third to core, evenly inside each tier; which ToR takes which is random, but its two
    go to different switches. All ports left on aggregation and core switches are joined uniformly at random,
    as a simple graph where one with such degrees is found, else with parallel links.
    Links between switches have capacity ``line_speed``, those of hosts have 1.

    tors + di + da / 2 switches, numbered ToRs, aggregation, core; tors + 3 da di / 4 links.
    Valid: da and di as for vl2, and 1 to 3 da di / 4 ToRs.

    Example: ``topology: {kind: vl2_rewired, da: 8, di: 6, tors: 15, seed: 1}``

    Source: SIN section 5.5 and Figure 5.9.
    """

    tors: int | None = Field(default=None, ge=1)
    """Top-of-rack switches. null: those of vl2."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        full = self.full_tors()
        tors = self.tors or full
        if tors > 3 * full:
            raise SpecError(f"the switches have ports for {3 * full} at most", key="tors")
        to_core = round(2 * tors / 3)
        uplinks = np.concatenate([evenly(2 * tors - to_core, self.di), evenly(to_core, self.da // 2)])
        ports = np.repeat([self.da, self.di], [self.di, self.da // 2])
        rng = np.random.default_rng(self.seed)
        pad = np.zeros(tors, np.int64)

        def draw() -> Topology:
            above = random_links(np.append(pad + 2, 0 * ports), True, rng, np.append(pad, uplinks))
            fabric = random_links(np.append(pad, ports - uplinks), False, rng)
            return self.network(tors, np.concatenate([above, fabric]))

        return first_connected(draw, "tors")
