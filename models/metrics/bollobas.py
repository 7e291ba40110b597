# SPDX-License-Identifier: Apache-2.0
"""Bollobás' lower bound on the bisection of random regular graphs."""

from math import log, sqrt
from typing import Any

from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "bollobas")
class Bollobas(MetricSpec):
    """Links that every equal bisection of a *random* regular graph of this order and degree cuts, almost surely.

    n (r / 4 - sqrt(r ln 2) / 2), at least 0, with n switches of r links each (the average, where degrees differ):
    it holds for almost every r-regular graph as n grows, and says nothing about other topologies of
    the same degree. ``per_switch``: / (n / 2); ``per_host``: / (half the capacity of the hosts' channels), None without
    hosts. All None for uni-directional topologies.

    Example: ``metrics: [{kind: bollobas}]``

    Source: Bollobás, European J. Combinatorics 9, 1988, doi:10.1016/S0195-6698(88)80014-3. SIN section 4.2.1,
    Figure 4.2.
    """

    def measure(self, topology: Topology) -> dict[str, Any]:
        if topology.directed:
            return {"": None, "per_switch": None, "per_host": None}
        n, degree = topology.switches, topology.channels / topology.switches
        cut = max(n * (degree / 4 - sqrt(degree * log(2)) / 2), 0.0)
        hosts = topology.hosts / 2 * topology.host_capacity
        return {"": cut, "per_switch": cut / (n / 2), "per_host": cut / hosts if hosts else None}
