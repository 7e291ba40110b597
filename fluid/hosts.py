"""Host channels: each serves one host, so they bound theta by themselves."""

import numpy as np

from fluid.certificate import Certificate
from models.topology.graph import Topology
from models.traffic.traffic import Traffic


def host_bound(topology: Topology, traffic: Traffic) -> float:
    """The theta at which the busiest host channel is full; inf if host channels are."""
    return topology.host_capacity / max(traffic.rate.max(), traffic.column_sums.max())


def host_certificate(topology: Topology, traffic: Traffic) -> Certificate:
    """Length 1 on the busiest host channel."""
    injection, ejection = np.zeros(topology.hosts), np.zeros(topology.hosts)
    if traffic.rate.max() >= traffic.column_sums.max():
        injection[traffic.rate.argmax()] = 1
    else:
        ejection[traffic.column_sums.argmax()] = 1
    return Certificate(np.zeros(topology.channels), injection, ejection)
