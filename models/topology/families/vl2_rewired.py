# SPDX-License-Identifier: Apache-2.0
"""VL2's equipment in a random network."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.vl2 import Vl2
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.wiring import evenly, first_connected, random_links


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
    seed: int = Field(default=1, ge=0)

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
