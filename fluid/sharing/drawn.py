"""What the flows of a datagram run could get over the very paths that were drawn for them."""

import numpy as np

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.sharing.flows import Flows
from flitlab.fluid.sharing.maxmin import max_concurrent, max_min
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.session import Session


def drawn_flows(session: Session) -> Flows:
    """The flows of a session, all of weight 1, over the paths of their subflows, host channels included."""
    topology = session.topology
    hosts = np.full(2 * topology.hosts, topology.host_capacity)
    paths = Paths(session.first, session.paths.start, session.paths.link, np.zeros(session.subflows))
    weight = np.ones(len(session.flows.source))
    return Flows(
        session.flows.source, session.flows.destination, weight, paths, np.concatenate([topology.capacity, hosts])
    )


def drawn_ceilings(session: Session, traffic: Traffic, kinds: tuple[str, ...]) -> dict[str, float]:
    """Ceilings of ``kinds`` over the paths drawn, by column of results.csv.

    mcf_paths_drawn: the largest theta such that every pair gets theta times its demand. mmf_drawn, mmf_drawn_min,
    mmf_drawn_jain: per host, as a fraction of the network interface, if every flow counts the same, the least flow's
    rate, and Jain's index.

    Raises :class:`~flitlab.fluid.problem.FluidError` if the LPs would be too large.
    """
    flows, found = drawn_flows(session), {}
    nic = session.topology.host_capacity
    if "mcf_paths" in kinds:
        found["mcf_paths_drawn"] = max_concurrent(_weighted(flows, traffic))
    if "mmf" in kinds:
        rates = flows.rates(max_min(flows))
        found["mmf_drawn"] = rates.total / session.topology.hosts / nic
        found["mmf_drawn_min"] = rates.least / nic
        found["mmf_drawn_jain"] = rates.jain
    return found


def _weighted(flows: Flows, traffic: Traffic) -> Flows:
    """The same flows, weighted by the demand of their pair, of which each has an equal part."""
    source, target, weight = traffic.pairs()
    hosts = traffic.topology.hosts
    pair, mine = source * hosts + target, flows.source * hosts + flows.target
    order = np.argsort(pair)
    place, number = np.unique(mine, return_inverse=True, return_counts=True)[1:]
    part = weight[order][np.searchsorted(pair[order], mine)] / number[place]
    return Flows(flows.source, flows.target, part, flows.paths, flows.capacity)
