# SPDX-License-Identifier: Apache-2.0
"""Traffic from every host to the one whose number has all bits flipped."""

import numpy as np

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import address_bits, fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "bit_complement")
class BitComplement(TrafficSpec):
    """Every bit of the host number is inverted.

    Example: ``traffic: {kind: bit_complement, packet_flits: 1}``

    Source: Dally and Towles, section 3.2.
    """

    def demand(self, topology: Topology) -> Traffic:
        address_bits(topology)
        return fixed_traffic(self.kind, topology, topology.hosts - 1 - np.arange(topology.hosts))
