# SPDX-License-Identifier: Apache-2.0
"""Max-min fairness over all paths there are: the LPs of :mod:`flitlab.fluid.sharing.maxmin`, whose duals price new
paths.

An optimum over some paths is one over all if none is cheaper, under the prices of the links, than the price of its
flow. Source: Nace, Doan, Klopfenstein, Bashllari, Computers & Operations Research 35 (2008),
doi:10.1016/j.cor.2006.03.020.
"""

import numpy as np
from scipy import sparse

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.sharing.flows import CompetingFlows, Rates, flows_most, flows_over
from flitlab.fluid.sharing.maxmin import LevelLp, Optimum, raised
from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

SIZE_MOST = 2_000_000
"""Flows times channels up to which the LPs are tried (about a minute)."""
START_GAP = 0.02
"""The gap to which the concurrent flow goes whose paths are the first ones."""
CHEAPER = 1e-9
"""A path joins if it is cheaper by this; the prices of all flows, times their weights, add up to 1."""
LEAST = 1e-12
"""Least price of a channel: paths do not wander over those without one."""


def free_max_min(topology: Topology, traffic: Traffic) -> tuple[CompetingFlows, Rates]:
    """The flows of a demand, over the first paths only, and their max-min fair rates by any routing.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LPs would be too large or fail.
    """
    count = flows_most(traffic)
    if count * topology.channels > SIZE_MOST:
        size = f"{count} flows over {topology.channels} channels"
        raise FluidError(f"over all paths there are, {size} are too many (their product is at most {SIZE_MOST})")
    problem = Problem.of(topology, traffic)
    first = Paths.none(0)
    if problem.demand.size:
        first = multipliers(problem, START_GAP, np.inf, effort(problem))[1]
    flows = flows_over(topology, traffic, problem, first)
    if len(flows.weight) == 0:
        return flows, Rates(flows.weight, flows.weight)
    ends, lp = _host_channels(flows, topology), LevelLp(flows)
    commodity = _commodities(problem, flows, topology)
    apart = np.flatnonzero(commodity >= 0)

    def more(optimum: Optimum) -> bool:
        """Adds a path to every flow for which there is a cheaper one than it has; whether there was any."""
        worth = optimum.flow_price - ends @ optimum.link_price - CHEAPER
        limit = np.zeros(problem.demand.size)
        np.maximum.at(limit, commodity[apart], worth[apart])
        length = np.maximum(optimum.link_price[: topology.channels], LEAST)
        distance, new = price(problem.graph, problem.demand, problem.dags, length, limit)
        gaining = apart[worth[apart] > distance[commodity[apart]]]
        for flow in gaining.tolist():
            own = slice(*new.start[commodity[flow] : commodity[flow] + 2])
            lp.add(flow, np.append(new.channel[own], ends.indices[slice(*ends.indptr[flow : flow + 2])]))
        return len(gaining) > 0

    # no path leads around the host channels; of other links nothing is certain
    rate, _ = raised(lp, flows.capacity, ends, more)
    return flows, Rates(rate, flows.weight)


def _host_channels(flows: CompetingFlows, topology: Topology) -> sparse.csr_array:
    """float64 [flows, links]: 1 for the host channels of every flow, unless they are infinite."""
    shape = (len(flows.weight), len(flows.capacity))
    if shape[1] == topology.channels:
        return sparse.csr_array(shape)
    links = topology.channels + np.column_stack([flows.source, topology.hosts + flows.target]).ravel()
    return sparse.csr_array((np.ones(len(links)), links, np.arange(0, len(links) + 1, 2)), shape)


def _commodities(problem: Problem, flows: CompetingFlows, topology: Topology) -> Ints:
    """int64 [flows]: the commodity that each is a part of, -1 within a switch."""
    s, t = topology.host_switch[flows.source], topology.ejection_switch[flows.target]
    commodity = np.full(len(s), -1)
    commodity[s != t] = problem.demand.find(topology.switches, s[s != t], t[s != t])
    return commodity
