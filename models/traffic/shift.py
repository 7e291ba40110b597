# SPDX-License-Identifier: Apache-2.0
"""Traffic from every host to the host at a fixed offset."""

from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts


@register("traffic", "shift")
class Shift(TrafficSpec):
    """Host i sends to host (i + by) mod hosts; ``by: random`` draws it from 1 to hosts - 1 (``seed``; see ``notes``).

    Example: ``traffic: {kind: shift, by: 17}``

    Example: ``traffic: {kind: shift, by: random, seed: 3}``

    Source: DBG section IV-B.
    """

    by: int | Literal["random"]
    seed: int = Field(default=1, ge=0)

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        by = int(generator(self.seed).integers(1, topology.hosts)) if self.by == "random" else self.by
        if by % topology.hosts == 0:
            raise SpecError(f"sends every host to itself ({topology.hosts} hosts)", key="by")
        host = np.arange(topology.hosts)
        return fixed_traffic(self.kind, topology, (host + by % topology.hosts) % topology.hosts, notes={"by": by})
