# SPDX-License-Identifier: Apache-2.0
"""Throughput of a routing's fixed split of traffic: by weights over next hops or over paths."""

import math
from dataclasses import replace

import numpy as np

from flitlab.fluid.graph import Dags, Demand, Graph
from flitlab.fluid.hosts import host_bound, max_factor
from flitlab.fluid.problem import FluidError, Problem
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
from flitlab.models.jit import njit
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.port_sets import ports_at
from flitlab.models.rules.route import port_part
from flitlab.models.rules.tables import Selection
from flitlab.models.table_cache import cached_while_referenced
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic


@njit
def split_load(graph: Graph, demand: Demand, dags: Dags) -> Floats:
    """Channel load of a demand that is split at every hop, equally or by weights.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand
        Commodities.
    dags : Dags
        Next hops and their weights.

    Returns
    -------
    float64 [channels]
        Flits/tick.
    """
    load = np.zeros(len(graph.src))
    carried = np.zeros(len(graph.in_start) - 1)
    for i in range(len(demand.target)):
        t = demand.target[i]
        for k in range(demand.start[i], demand.start[i + 1]):
            carried[demand.source[k]] = demand.amount[k]
        for j in range(len(carried) - 1, 0, -1):
            v = dags.order[t, j]
            if v < 0 or carried[v] == 0.0:
                continue
            here, carried[v] = carried[v], 0.0
            ports = ports_at(dags.ports[t], v)
            rest = ports
            while not is_empty(rest):
                port = lowest(rest)
                rest = without_lowest(rest)
                a = graph.out_start[v] + port
                share = port_part(here, dags.threshold, ports, t, v, port)
                load[a] += share
                carried[graph.dst[a]] += share
        carried[t] = 0.0
    return load


def split_theta(problem: Problem, topology: Topology, traffic: Traffic) -> float:
    """Theta of the network channels under the split; inf if no demand crosses the network.

    Parameters
    ----------
    problem : Problem
        The flow problem, restricted to the routes.
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    """
    use = split_use(problem, topology, traffic)
    return float(1 / use.max()) if use.any() else np.inf


def split_use(problem: Problem, topology: Topology, traffic: Traffic) -> Floats:
    """Load over capacity of every network channel at load 1 under the split.

    With intermediate switches (that of a random host) every demand becomes one for each leg.

    Parameters
    ----------
    problem : Problem
        The flow problem, restricted to the routes.
    topology : Topology
        The network.
    traffic : Traffic
        The demand.

    Returns
    -------
    float64 [channels]
        Utilisation at load 1.
    """
    if problem.paths is not None:
        load = problem.paths.load(problem.graph.channels)
    else:
        demand = Demand.of(_by_legs(topology, traffic.switch_demand)) if problem.via_intermediate else problem.demand
        load = split_load(problem.graph, demand, problem.dags)
    return load / problem.graph.capacity


def growing_split(topology: Topology, traffic: Traffic, routes: Routes) -> float:
    """The largest load of traffic with a background at which no network channel is overloaded under the split.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        Growing demand and background.
    routes : Routes
        Define the split.

    Returns
    -------
    float
        0 where the background overloads a channel; inf if no growing demand crosses the network.

    Raises
    ------
    FluidError
        As :meth:`~flitlab.fluid.problem.Problem.of`.
    """
    assert traffic.background is not None
    fixed, growing = (
        split_use(Problem.of(topology, part, routes), topology, part)
        for part in (traffic.background, replace(traffic, background=None))
    )
    return 0.0 if (fixed > 1).any() else float(max_factor(1.0, fixed, growing).min(initial=np.inf))


def _by_legs(topology: Topology, demand: np.ndarray) -> Floats:
    """float64 [switches, switches]: the demand of both legs if all traffic goes over the switch of a random host."""
    share = topology.host_count / topology.hosts
    return np.outer(demand.sum(axis=1), share) + np.outer(share, demand.sum(axis=0))


SPLIT_SWITCHES = 2048
"""Switches up to which the split of a routing is computed by default: its tables grow as their square."""


@cached_while_referenced
def certified_limit(instance: Instance) -> float:
    """The load above which some queue grows without limit, by the demand and the routing; inf if none does."""
    topology, traffic, routes = instance.topology, instance.traffic, instance.routes
    limit = float(host_bound(topology, traffic)) if traffic.rate.any() else math.inf
    if routes is None or routes.deflection or routes.select != Selection.RANDOM or topology.switches > SPLIT_SWITCHES:
        return limit
    try:
        if traffic.background is not None:
            return min(limit, growing_split(topology, traffic, routes))
        return min(limit, split_theta(Problem.of(topology, traffic, routes), topology, traffic))
    except FluidError:
        return limit
