# SPDX-License-Identifier: Apache-2.0
"""The throughput models as rows of a table of ceilings."""

from collections.abc import Callable, Iterator

import numpy as np

from flitlab.fluid.ceiling import NO_THETA, PER_FLOW, Ceiling, theta_unit
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.sharing.flows import CompetingFlows, Rates, flows_of
from flitlab.fluid.sharing.free import free_max_min
from flitlab.models.instance import Instance

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
