# SPDX-License-Identifier: Apache-2.0
"""Prices of switches and cables."""

from typing import Any

from flitlab.models.layout.metric import LayoutSpec
from flitlab.models.layout.prices import cable_prices, switch_prices
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "cost")
class CostMetric(LayoutSpec):
    """Price of the network in dollars: switches by their ports, cables by length and capacity.

    A switch of k ports costs 350.4 k - 892.3 (0 at least), k counting hosts and network ports in use; one
    uni-directional channel in and one out share a port. A cable of x metres costs 0.4079 x + 0.5771 dollars
    per Gbit/s if electric and 0.0919 x + 2.7452 if optical, at 40 Gbit/s times its capacity; a uni-directional one
    half of that. Layout and choice of cables as in ``cables``, with the same parameters. Cables to hosts are left
    out unless ``hosts: true``: they are the same in every topology.

    Gives total, switches, cables, per_host.

    The cables of SIN section 6.5 (5 to 6 dollars a metre, electric up to 10 m, two transceivers of 200 dollars
    for an optical one) are ``constants: {cable: {gbps: 1, electric: {fixed: 0, per_metre: 5.5}, optical: {fixed: 400,
    per_metre: 5.5}, reach: 10}}``.

    Example: ``metrics: [{kind: cost, placement: optimised, reach: 5}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014 (Mellanox InfiniBand FDR10).
    """

    def measure(self, topology: Topology) -> dict[str, Any]:
        constants = self.effective_constants
        cables, metres = self.cables(topology, self.cabinets(topology))
        switches = float(switch_prices(topology, constants.switch).sum())
        wires = float(cable_prices(cables, metres, constants.cable).sum())
        total = switches + wires
        per_host = total / topology.hosts if topology.hosts else None
        return {"total": total, "switches": switches, "cables": wires, "per_host": per_host}
