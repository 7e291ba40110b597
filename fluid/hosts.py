# SPDX-License-Identifier: Apache-2.0
"""Host channels: each serves one host, so they bound theta whatever the network."""

import numpy as np

from flitlab.fluid.certificate import Certificate
from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.models.traffic.traffic import Traffic

ALIKE = 1e-9
"""Relative difference below which two hosts count as receiving the same."""

ROUNDING = 1e-12
"""Relative difference up to which the largest sum of a demand is 1, and a load is not more than a capacity."""


def max_factor(capacity: np.ndarray | float, fixed: np.ndarray, growing: np.ndarray) -> Floats:
    """The largest x with fixed + x * growing <= capacity, for each channel.

    Parameters
    ----------
    capacity : float or float64 [channels]
        Flits/tick.
    fixed, growing : float64 [channels]
        Load of the fixed, and of the growing part.

    Returns
    -------
    float64 [channels]
        0 where the fixed part exceeds the capacity, also if nothing grows there; else inf where nothing grows.
    """
    spare = np.broadcast_to(np.maximum(capacity - fixed, 0.0), growing.shape)
    unlimited = np.where(fixed > capacity * (1 + ROUNDING), 0.0, np.inf)
    factor: Floats = np.divide(spare, growing, out=unlimited, where=growing > 0)
    return factor


def _max_theta_by_host(topology: Topology, traffic: Traffic) -> tuple[np.ndarray, np.ndarray]:
    """float64 [hosts] each: theta at which injection and ejection channels are full; inf where they never are."""
    capacity = topology.host_capacity
    return max_factor(capacity, traffic.sent(0), traffic.rate), max_factor(
        capacity, traffic.received(0), traffic.column_sums
    )


def host_bound(topology: Topology, traffic: Traffic) -> float:
    """Theta at which the busiest host channel is full; inf if host channels are infinite. A background does not
    grow.
    """
    if traffic.background is None:
        theta: float = topology.host_capacity / max(traffic.rate.max(), traffic.column_sums.max())
        return theta
    return float(min(map(np.min, _max_theta_by_host(topology, traffic))))


def load_of(topology: Topology, traffic: Traffic, flits: float) -> float:
    """The load at which the busiest host sends or receives ``flits`` per tick.

    It converts a limit of hose demands, in which every host sends and receives ``flits`` at most, to a load, whatever
    the largest row or column sum of T is (``normalise: none``).

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    flits : float
        Flits/tick of a host.

    Returns
    -------
    float
        Load: 0 where the background exceeds ``flits``; ``flits`` where the largest sum is 1, or nothing is demanded.
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
    """Price 1 on the host channel that is full first."""
    lengths = np.zeros(topology.hosts), np.zeros(topology.hosts)
    sent, received = _max_theta_by_host(topology, traffic)
    if sent.min() <= received.min():
        lengths[0][sent.argmin()] = 1
    else:
        lengths[1][received.argmin()] = 1
    return Certificate(np.zeros(topology.channels), *lengths)


def hot_host_note(topology: Topology, traffic: Traffic, ceiling: float) -> str:
    """A warning that the ejection channels of few hosts determine a ceiling, and not the network; '' otherwise.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    ceiling : float
        Theta.
    """
    sent, received = _max_theta_by_host(topology, traffic)
    full = received.min()
    hot_hosts = np.flatnonzero(received <= full * (1 + ALIKE))
    if full > ceiling * (1 + ALIKE) or 2 * len(hot_hosts) > len(received) or sent.min() <= full:
        return ""
    first = host_names(topology).label(hot_hosts[0])
    named = f"host {first}" if len(hot_hosts) == 1 else f"{len(hot_hosts)} hosts (the first is {first})"
    return f"the ejection channel of {named} binds, not the network: most routings come close to this ceiling"
