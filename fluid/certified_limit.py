# SPDX-License-Identifier: Apache-2.0
"""The certified limit of a scenario, as far as it is known without a solver."""

import math

from flitlab.fluid.hosts import host_bound
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.split import growing_split, split_theta
from flitlab.models.instance import Instance
from flitlab.models.rules.tables import RANDOM
from flitlab.models.table_cache import cached_while_referenced

SPLIT_SWITCHES = 2048
"""Switches up to which the split of a routing is computed by default: its tables grow as their square."""


@cached_while_referenced
def certified_limit(instance: Instance) -> float:
    """The load above which some queue grows without limit, by the demand and the routing; inf if none does."""
    topology, traffic, routes = instance.topology, instance.traffic, instance.routes
    limit = float(host_bound(topology, traffic)) if traffic.rate.any() else math.inf
    if routes is None or routes.deflection or routes.select != RANDOM or topology.switches > SPLIT_SWITCHES:
        return limit
    try:
        if traffic.background is not None:
            return min(limit, growing_split(topology, traffic, routes))
        return min(limit, split_theta(Problem.of(topology, traffic, routes), topology, traffic))
    except FluidError:
        return limit
