# SPDX-License-Identifier: Apache-2.0
"""Power of a network under traffic: of switches, of the transceivers of links, and of NICs."""

from typing import NamedTuple

from flitlab.models.arrays import Floats
from flitlab.models.layout.design_prices import DesignPrices
from flitlab.models.layout.nodes import are_between_switches, are_switches
from flitlab.models.topology.graph import Topology

PARTS = ("switches", "links", "nics")
"""Parts of a network that draw power."""


class EnergyBasis(NamedTuple):
    """What the power of a run follows from. prices: power of parts. gbps: rate of a channel of capacity 1."""

    prices: DesignPrices
    gbps: float


class Power(NamedTuple):
    """Mean power in watts of a part of a network: without traffic, and what its bits add."""

    idle: float
    bits: float

    @property
    def total(self) -> float:
        """Idle power and that of bits."""
        return self.idle + self.bits


def power(topology: Topology, sent: Floats, received: float, prices: DesignPrices, gbps: float) -> dict[str, Power]:
    """The mean power of each of :data:`PARTS`.

    A channel of capacity c is c ``gbps`` / ``prices.gbps`` of a port, half of it at each end; a host has a port of its
    switch and a NIC. Every link between switches has a transceiver at both ends; the cables of hosts are of copper.
    Ports that are not in use draw nothing. A card or server that is a node
    (:func:`~flitlab.models.layout.nodes.are_switches`) is the NIC of its host: it has no ports of a switch.

    Parameters
    ----------
    topology: the network; ``host_capacity`` is finite.
    sent: float64 [channels], mean traffic of each channel between switches, as a multiple of capacity 1.
    received: mean traffic that all hosts receive together, in the same unit.
    prices: power of a port, a transceiver and a NIC at full load, and of a bit.
    gbps: rate of a channel of capacity 1.
    """
    is_switch, optical = are_switches(topology), are_between_switches(topology)
    ends = (is_switch[topology.src].astype(float) + is_switch[topology.dst]) / 2
    at_switches = float(topology.host_count[is_switch].sum() / max(topology.hosts, 1))  # the share of hosts
    host, out = gbps * topology.hosts * float(topology.host_capacity), gbps * received
    ports = gbps * float((topology.capacity * ends).sum()) + host * at_switches
    through = gbps * float(sent[is_switch[topology.src]].sum()) + out * at_switches

    def part(watts: float, bit_pj: float, capacity: float, traffic: float) -> Power:
        bit = bit_pj * 1e-3  # pJ times Gbit/s are mW
        return Power((watts / prices.gbps - bit) * capacity, bit * traffic)

    return {
        "switches": part(prices.switch_port_watts, prices.switch_bit_pj, ports, through),
        "links": part(
            prices.optic_watts,
            prices.optic_bit_pj,
            gbps * float(topology.capacity[optical].sum()),
            gbps * float(sent[optical].sum()),
        ),
        "nics": part(prices.nic_watts, prices.nic_bit_pj, host, out),
    }
