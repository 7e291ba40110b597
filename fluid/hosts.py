# SPDX-License-Identifier: Apache-2.0
"""Host channels: each serves one host, so they bound theta by themselves."""

import numpy as np

from flitlab.fluid.certificate import Certificate
from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.models.traffic.traffic import Traffic

ALIKE = 1e-9
"""Relative difference below which two hosts receive the same."""

ROUNDING = 1e-12
"""A largest sum of a demand that is this close to 1 is 1."""


def max_factor(capacity: np.ndarray | float, fixed: np.ndarray, growing: np.ndarray) -> Floats:
    """float64: the largest x with fixed + x * growing <= room, for each channel; inf where nothing grows.

    0 where the fixed part alone is more than there is room for.
    """
    spare = np.broadcast_to(np.maximum(capacity - fixed, 0.0), growing.shape)
    factor: Floats = np.divide(spare, growing, out=np.full(len(growing), np.inf), where=growing > 0)
    return factor


def _max_theta_by_host(topology: Topology, traffic: Traffic) -> tuple[np.ndarray, np.ndarray]:
    """float64 [hosts] each: the theta at which injection and ejection channels are full; inf where they never are."""
    capacity = topology.host_capacity
    return max_factor(capacity, traffic.sent(0), traffic.rate), max_factor(
        capacity, traffic.received(0), traffic.column_sums
    )


def host_bound(topology: Topology, traffic: Traffic) -> float:
    """The theta at which the busiest host channel is full; inf if host channels are. A background does not grow."""
    if traffic.background is None:
        theta: float = topology.host_capacity / max(traffic.rate.max(), traffic.column_sums.max())
        return theta
    return float(min(map(np.min, _max_theta_by_host(topology, traffic))))


def load_of(topology: Topology, traffic: Traffic, flits: float) -> float:
    """The load at which the busiest host sends or receives so many flits per tick.

    A limit on hose demands, in which every host sends and receives ``flits`` at most, becomes one on loads, whatever
    the largest row or column sum of T is (``normalise: none``). 0 where a background alone is more; ``flits`` where
    that sum is 1, or nothing is demanded.
    """
    busiest = float(max(traffic.rate.max(), traffic.column_sums.max()))
    if busiest == 0 or (traffic.background is None and abs(busiest - 1) <= ROUNDING):
        return flits
    sent, received = (
        max_factor(flits, traffic.sent(0), traffic.rate),
        max_factor(flits, traffic.received(0), traffic.column_sums),
    )
    return float(min(sent.min(), received.min()))


def host_certificate(topology: Topology, traffic: Traffic) -> Certificate:
    """Length 1 on the host channel that is full first."""
    lengths = np.zeros(topology.hosts), np.zeros(topology.hosts)
    sent, received = _max_theta_by_host(topology, traffic)
    if sent.min() <= received.min():
        lengths[0][sent.argmin()] = 1
    else:
        lengths[1][received.argmin()] = 1
    return Certificate(np.zeros(topology.channels), *lengths)


def hot_hosts(topology: Topology, traffic: Traffic, ceiling: float) -> str:
    """A warning that a ceiling is the ejection channel of a few hosts, and says nothing of the network, or ''."""
    sent, received = _max_theta_by_host(topology, traffic)
    full = received.min()
    hot = np.flatnonzero(received <= full * (1 + ALIKE))
    if full > ceiling * (1 + ALIKE) or 2 * len(hot) > len(received) or sent.min() <= full:
        return ""
    first = host_names(topology).label(hot[0])
    named = f"host {first}" if len(hot) == 1 else f"{len(hot)} hosts (the first is {first})"
    return f"the ejection channel of {named} binds, not the network: most routings come close to this ceiling"
