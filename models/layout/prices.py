# SPDX-License-Identifier: Apache-2.0
"""Prices of cables and switches."""

import numpy as np

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.layout.constants import Cable, Price, Switch
from flitlab.models.layout.floor import Cables
from flitlab.models.layout.nodes import are_switches
from flitlab.models.topology.graph import Topology


def is_optical(metres: np.ndarray, model: Cable) -> Bools:
    """Return whether each cable is optical, bool [cables]: beyond the electric reach or, without a reach, cheaper.

    Parameters
    ----------
    metres: float64 [cables], their lengths.
    model: reach and prices.
    """
    if model.reach is not None:
        return metres > model.reach
    return _dollars_per_gbps(metres, model.optical) < _dollars_per_gbps(metres, model.electric)


def cable_prices(cables: Cables, metres: np.ndarray, cabinet: np.ndarray, model: Cable) -> Floats:
    """Compute the price of each cable in dollars with its installation, proportional to its capacity.

    Parameters
    ----------
    cables: the cables.
    metres: float64 [cables], their lengths.
    cabinet: int64 [switches], the cabinet of each switch.
    model: prices; uni-directional cables have a reduced one.

    Returns
    -------
    float64 [cables].
    """
    electric, optical = (_dollars_per_gbps(metres, price) for price in (model.electric, model.optical))
    dollars = np.where(is_optical(metres, model), optical, electric) * model.gbps * cables.capacity
    is_within = cabinet[cables.ends[:, 0]] == cabinet[cables.ends[:, 1]]
    dollars += np.where(is_within, model.installation.within, model.installation.between) * cables.capacity
    return np.where(cables.unidirectional, model.one_way * dollars, dollars)


def _dollars_per_gbps(metres: np.ndarray, price: Price) -> np.ndarray:
    return price.fixed + price.per_metre * metres


def ports(topology: Topology) -> Ints:
    """Return the ports in use of each node, int64 [switches], for hosts and for cables to other nodes.

    A port has an input and an output: a bi-directional link takes both; one uni-directional channel in and one out
    share a port.
    """
    return _ports(topology, np.ones(topology.channels), 1.0).astype(np.int64)


def rated_ports(topology: Topology) -> Floats:
    """Return the capacity of the ports in use of each switch, float64 [switches]: of n ports of capacity 1, n.

    Cards and servers have none. A host of unlimited rate takes a port of capacity 1.
    """
    rated = _ports(topology, topology.capacity, topology.host_capacity if np.isfinite(topology.host_capacity) else 1.0)
    return np.where(are_switches(topology), rated, 0.0)


def _ports(topology: Topology, weight: Floats, of_host: float) -> Floats:
    """The ports of each node, weighted by channel, float64 [switches]."""
    one_way, count = topology.reverse < 0, topology.switches
    sent, arriving = (
        [np.bincount(ends[part], weight[part], count) for part in (~one_way, one_way)]
        for ends in (topology.src, topology.dst)
    )
    used: Floats = np.maximum(sent[0], arriving[0]) + np.maximum(sent[1], arriving[1])
    return used + topology.host_count * of_host


def switch_prices(topology: Topology, model: Switch) -> Floats:
    """Return the price of each switch in dollars, float64 [switches], at least 0; cards and servers have none.

    By its ports in use, and in proportion to their mean capacity, as the price of cables is.
    """
    count = ports(topology)
    dollars = np.maximum(0.0, model.fixed + model.per_port * count)
    prices: Floats = dollars * rated_ports(topology) / np.maximum(count, 1)
    return prices
