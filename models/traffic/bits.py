# SPDX-License-Identifier: Apache-2.0
"""Traffic to the host whose number has other bits."""

import numpy as np

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import address_bits, fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "bit_complement", aliases=("bitcomp",))
class BitComplement(TrafficSpec):
    """Every bit of the host number is inverted.

    Example: ``traffic: {kind: bit_complement, packet_flits: 1}``

    Source: Dally and Towles, section 3.2.
    """

    def demand(self, topology: Topology) -> Traffic:
        address_bits(topology)
        return fixed_traffic(self.kind, topology, topology.hosts - 1 - np.arange(topology.hosts))


@register("traffic", "bit_reversal", aliases=("bitrev",))
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


@register("traffic", "transpose")
class Transpose(TrafficSpec):
    """Matrix transpose: the two halves of the host number's bits are swapped (an even number of bits).

    Hosts whose halves are equal send nothing.

    Example: ``traffic: {kind: transpose, packet_flits: 33}``

    Source: Dally and Towles, section 3.2; UNI Fig. 6.
    """

    def demand(self, topology: Topology) -> Traffic:
        bits = address_bits(topology)
        if bits % 2:
            raise SpecError(
                f"needs an even power of two of hosts (4, 16, 64, ...); the topology has {topology.hosts}",
                key="kind",
            )
        half, host = bits // 2, np.arange(topology.hosts)
        return fixed_traffic(self.kind, topology, (host >> half) | ((host & ((1 << half) - 1)) << half))
