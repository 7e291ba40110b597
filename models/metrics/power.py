# SPDX-License-Identifier: Apache-2.0
"""Power consumption of the switches."""

from typing import Any

from flitlab.models.layout.metric import PhysicalSpec
from flitlab.models.layout.prices import ports
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "power")
class PowerMetric(PhysicalSpec):
    """Power of the switches in watts: 2.8 for every port in use, of hosts as well (four lanes of 0.7 W).

    One uni-directional channel in and one out share a port. ``constants`` as in ``cables``.

    Gives total, per_host.

    Example: ``metrics: [{kind: power, constants: {switch: {watts_per_port: 3.5}}}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014.
    """

    def measure(self, topology: Topology) -> dict[str, Any]:
        total = float(self.constants.switch.watts_per_port * ports(topology).sum())
        return {"total": total, "per_host": total / topology.hosts if topology.hosts else None}
