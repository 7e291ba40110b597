# SPDX-License-Identifier: Apache-2.0
"""Which channels bind: those that no flow near a certified optimum can leave free.

Let lengths z make the distances of a demand T add up to 1. A flow of theta T has theta <= sum of z_a f_a, and
sum of z_a c_a = upper; so of flows with theta >= lower, sum of z_a (c_a - f_a) <= upper - lower. The wider the gap,
the less a price, c_a z_a, says: this is complementary slackness where optima are known up to a gap.
"""

from typing import NamedTuple

from flitlab.fluid.certificate import Certificate
from flitlab.models.arrays import Bools
from flitlab.models.topology.graph import Topology

FULL = 0.95
"""A channel binds if every flow that reaches the lower bound fills it to this part at least."""
ROUNDING = 1e-9
"""What a gap is taken to be at least: bounds are sums of doubles."""


class Bottlenecks(NamedTuple):
    """network: bool [channels]. hosts: whether host channels, taken together, bind."""

    network: Bools
    hosts: bool

    @property
    def any(self) -> bool:
        """Whether something is known to bind."""
        return self.hosts or bool(self.network.any())


def bottlenecks(topology: Topology, certificate: Certificate, lower: float, upper: float) -> Bottlenecks:
    """What binds according to the lengths that certify ``upper``, given that some flow reaches ``lower`` > 0."""
    at_hosts = float(certificate.injection.sum() + certificate.ejection.sum())
    hosts = topology.host_capacity * at_hosts if at_hosts else 0.0
    price = topology.capacity * certificate.network
    enough = max(1 - lower / upper, ROUNDING) / (1 - FULL) * (price.sum() + hosts)
    return Bottlenecks((price > 0) & (price >= enough), hosts > 0 and hosts >= enough)
