# SPDX-License-Identifier: Apache-2.0
"""The throughput models as rows of a table of ceilings, and as columns of a run over the paths that it drew."""

from collections.abc import Callable, Iterator

import numpy as np

from flitlab.fluid.ceiling import NO_THETA, PER_FLOW, Ceiling, theta_unit
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.sharing.flows import CompetingFlows, Rates, flows_of
from flitlab.fluid.sharing.maxmin import free_max_min, max_concurrent, max_min
from flitlab.models.instance import Instance
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.session import Session

TOTAL = "flits/tick"


def model_rows(
    instance: Instance, kind: str, model: Callable[[CompetingFlows], np.ndarray], method: str = ""
) -> Iterator[Ceiling]:
    """``kind`` (mean rate per flow), and its total, least rate, theta and Jain index; or why it would be too large.

    model: gives rates [paths] to flows. method: how it does so, '' where that follows from how many paths there are.
    Without a routing max-min fair rates are over all paths there are.
    """
    Problem.of(instance.topology, instance.traffic)  # for its errors
    try:
        yield from list(_model_rows(instance, kind, model, method))
    except FluidError as error:
        yield Ceiling.omitted(kind, theta_unit(instance.topology), str(error))


def _model_rows(
    instance: Instance, kind: str, model: Callable[[CompetingFlows], np.ndarray], method: str
) -> Iterator[Ceiling]:
    if instance.routes is None:
        flows, rates = free_max_min(instance.topology, instance.traffic)
        method, over = "LPs (HiGHS), generated paths", "all paths"
    else:
        flows = flows_of(instance)
        rates = flows.rates(model(flows)) if len(flows.weight) else Rates(flows.weight, flows.weight)
        single = (np.diff(flows.paths.first) == 1).all()
        method = method or ("filling" if single else "LPs (HiGHS)")
        over = f"{len(flows.paths.flow)} paths"
    if len(flows.weight) == 0:
        yield Ceiling.omitted(kind, PER_FLOW, "no flow crosses a link of finite capacity")
        return
    note = f"{len(flows.weight)} flows, {over}"
    if instance.topology.subnets > 1:
        note += "; a pair of hosts has a flow in each subnet that it uses"
    if flows.local:
        note += f"; without {flows.local:g} of demand that needs no link"
    theta = theta_unit(instance.topology)
    rows = [
        (kind, rates.mean, PER_FLOW), (f"{kind}:total", rates.total, TOTAL), (f"{kind}:min", rates.least, PER_FLOW),
        (f"{kind}:theta", rates.theta, theta), (f"{kind}:jain", rates.jain, "1"),
    ]  # fmt: skip
    for name, value, unit in rows:
        yield Ceiling.value(name, value, value, unit, method, note if name == kind else "")


def with_rates(instance: Instance, ceiling: Ceiling, per_flow: bool) -> Iterator[Ceiling]:
    """A ceiling of theta and, if ``per_flow``, what flows get if all have theta times their demand.

    Of that mean, total and least rate, and Jain's index.
    """
    yield ceiling
    if not per_flow:
        return
    name, method = ceiling.ceiling, ceiling.method
    if instance.traffic.background is not None:
        yield Ceiling.omitted(f"{name}:mean", PER_FLOW, NO_THETA)
        return
    weight = instance.traffic.pairs()[2]
    unit = Rates(weight[weight > 0], weight[weight > 0])
    rows = [("mean", unit.mean, PER_FLOW), ("total", unit.total, TOTAL), ("min", unit.least, PER_FLOW)]
    for part, value, what in rows:
        yield Ceiling.value(f"{name}:{part}", ceiling.lower * value, ceiling.upper * value, what, method)
    yield Ceiling.value(f"{name}:jain", unit.jain, unit.jain, "1", method)


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
    """The same flows, each weighted by an equal part of the demand of its pair."""
    source, target, weight = traffic.pairs()
    hosts = traffic.topology.hosts
    pair, mine = source * hosts + target, flows.source * hosts + flows.target
    order = np.argsort(pair)
    place, number = np.unique(mine, return_inverse=True, return_counts=True)[1:]
    part = weight[order][np.searchsorted(pair[order], mine)] / number[place]
    return CompetingFlows(flows.source, flows.target, part, flows.paths, flows.capacity)
