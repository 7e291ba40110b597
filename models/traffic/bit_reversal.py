# SPDX-License-Identifier: Apache-2.0
"""Traffic from every host to the one whose number has the bits in reverse order."""

import numpy as np

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import address_bits, fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "bit_reversal")
class BitReversal(TrafficSpec):
    """The bits of the host number are reversed; hosts with palindromic numbers send nothing.

    Example: ``traffic: {kind: bit_reversal, packet_flits: 33}``

    Source: Dally and Towles, section 3.2; UNI Fig. 7.
    """

    def demand(self, topology: Topology) -> Traffic:
        bits, host = address_bits(topology), np.arange(topology.hosts)
        reverse = np.zeros_like(host)
        for b in range(bits):
            reverse |= ((host >> b) & 1) << (bits - 1 - b)
        return fixed_traffic(self.kind, topology, reverse)
