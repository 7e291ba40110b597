# SPDX-License-Identifier: Apache-2.0
"""What the flows of a datagram run could get over the very paths that were drawn for them."""

import numpy as np

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.sharing.flows import CompetingFlows
from flitlab.fluid.sharing.maxmin import max_concurrent, max_min
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.session import Session


def drawn_flows(session: Session) -> CompetingFlows:
    """The flows of a session, all of weight 1, over the paths of their subflows, host channels included."""
    topology = session.topology
    hosts = np.full(2 * topology.hosts, topology.host_capacity)
    paths = Paths(session.first, session.paths.start, session.paths.link, np.zeros(session.subflows))
    weight = np.ones(len(session.flows.source))
    return CompetingFlows(
        session.flows.source, session.flows.destination, weight, paths, np.concatenate([topology.capacity, hosts])
    )


def drawn_theta(session: Session, traffic: Traffic) -> float:
    """The largest theta such that every pair gets theta times its demand over the paths that were drawn.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LP would be too large.
    """
    return max_concurrent(_weighted(drawn_flows(session), traffic))


def drawn_rates(session: Session) -> dict[str, float]:
    """Max-min fair rates over the paths that were drawn, if every flow counts the same, by column of results.csv.

    mmf_drawn: mean per host, as a fraction of the network interface. mmf_drawn_min: the least flow's rate, likewise.
    mmf_drawn_jain: Jain's index. Raises :class:`~flitlab.fluid.problem.FluidError` if the LPs would be too large.
    """
    flows, nic = drawn_flows(session), session.topology.host_capacity
    rates = flows.rates(max_min(flows))
    per_host = rates.total / session.topology.hosts / nic
    return {"mmf_drawn": per_host, "mmf_drawn_min": rates.least / nic, "mmf_drawn_jain": rates.jain}


def _weighted(flows: CompetingFlows, traffic: Traffic) -> CompetingFlows:
    """The same flows, weighted by the demand of their pair, of which each has an equal part."""
    source, target, weight = traffic.pairs()
    hosts = traffic.topology.hosts
    pair, mine = source * hosts + target, flows.source * hosts + flows.target
    order = np.argsort(pair)
    place, number = np.unique(mine, return_inverse=True, return_counts=True)[1:]
    part = weight[order][np.searchsorted(pair[order], mine)] / number[place]
    return CompetingFlows(flows.source, flows.target, part, flows.paths, flows.capacity)
