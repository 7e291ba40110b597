# SPDX-License-Identifier: Apache-2.0
"""Bottlenecks: channels that every near-optimal flow fills.

Let prices z make the distances of a demand T add up to 1. A flow of theta T has theta <= sum of z_a f_a, and sum of z_a
c_a = upper. So every flow with theta >= lower has sum of z_a (c_a - f_a) <= upper - lower: complementary slackness for
optima that are known up to a gap. The wider the gap, the less a price c_a z_a proves.
"""

from typing import NamedTuple

from flitlab.fluid.certificate import Certificate
from flitlab.models.arrays import Bools
from flitlab.models.topology.graph import Topology

FULL = 0.95
"""A channel is a bottleneck if every flow that reaches the lower bound uses at least this share of its capacity."""
ROUNDING = 1e-9
"""Least relative gap that is assumed: bounds are sums of doubles."""


class Bottlenecks(NamedTuple):
    """Which channels limit theta. network: bool [channels]. hosts: whether host channels, taken together, do."""

    network: Bools
    hosts: bool

    @property
    def any(self) -> bool:
        """Whether some bottleneck is known."""
        return self.hosts or bool(self.network.any())


def bottlenecks(topology: Topology, certificate: Certificate, lower: float, upper: float) -> Bottlenecks:
    """The bottlenecks that channel prices prove.

    Parameters
    ----------
    topology : Topology
        The network.
    certificate : Certificate
        Prices that prove ``upper``.
    lower : float
        Theta that some flow reaches, > 0.
    upper : float
        Upper bound on theta.
    """
    at_hosts = float(certificate.injection.sum() + certificate.ejection.sum())
    hosts = topology.host_capacity * at_hosts if at_hosts else 0.0
    price = topology.capacity * certificate.network
    enough = max(1 - lower / upper, ROUNDING) / (1 - FULL) * (price.sum() + hosts)
    return Bottlenecks((price > 0) & (price >= enough), hosts > 0 and hosts >= enough)
