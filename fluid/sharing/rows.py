"""The throughput models as rows of a table of ceilings."""

from collections.abc import Callable, Iterator

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.sharing.flows import Flows, Rates, flows_of
from flitlab.fluid.sharing.free import free_max_min
from flitlab.fluid.sharing.hoefler import hoefler
from flitlab.fluid.sharing.jain import jain
from flitlab.fluid.sharing.maxmin import max_min
from flitlab.models.scenario import Scenario

MODELS: dict[str, Callable[[Flows], np.ndarray]] = {"mmf": max_min, "hm": hoefler, "jm": jain}
"""Kind of ceiling -> rates [paths] of some flows."""

PER_FLOW, TOTAL = "flits/tick/flow", "flits/tick"


def model_rows(scenario: Scenario, kind: str, theta_unit: str) -> Iterator[Ceiling]:
    """``kind`` (mean rate per flow), and its total, least rate, theta and Jain index.

    Without a routing ``mmf`` is over all paths there are. Raises :class:`~flitlab.fluid.problem.FluidError` if the
    flows have too many paths.
    """
    if scenario.routes is None:
        flows, rates = free_max_min(scenario.topology, scenario.traffic)
        method, over = "LPs (HiGHS), generated paths", "all paths"
    else:
        flows = flows_of(scenario)
        rates = flows.rates(MODELS[kind](flows)) if len(flows.weight) else Rates(flows.weight, flows.weight)
        single = (np.diff(flows.paths.first) == 1).all()
        method = {"hm": "shares", "jm": "repeated shares"}.get(kind, "filling" if single else "LPs (HiGHS)")
        over = f"{len(flows.paths.flow)} paths"
    if len(flows.weight) == 0:
        yield Ceiling.omitted(kind, PER_FLOW, "no flow crosses a link of finite capacity")
        return
    note = f"{len(flows.weight)} flows, {over}"
    if flows.local:
        note += f"; without {flows.local:g} of demand that needs no link"
    rows = [
        (kind, rates.mean, PER_FLOW), (f"{kind}:total", rates.total, TOTAL), (f"{kind}:min", rates.least, PER_FLOW),
        (f"{kind}:theta", rates.theta, theta_unit), (f"{kind}:jain", rates.jain, "1"),
    ]  # fmt: skip
    for name, value, unit in rows:
        yield Ceiling.value(name, value, value, unit, method, note if name == kind else "")


def theta_rows(scenario: Scenario, ceiling: Ceiling) -> Iterator[Ceiling]:
    """What flows get if all have theta times their demand: mean, total and least rate, and Jain index."""
    weight = scenario.traffic.pairs()[2]
    unit = Rates(weight[weight > 0], weight[weight > 0])
    rows = [("mean", unit.mean, PER_FLOW), ("total", unit.total, TOTAL), ("min", unit.least, PER_FLOW)]
    for name, value, what in rows:
        yield Ceiling.value(
            f"{ceiling.ceiling}:{name}", ceiling.lower * value, ceiling.upper * value, what, ceiling.method
        )
    yield Ceiling.value(f"{ceiling.ceiling}:jain", unit.jain, unit.jain, "1", ceiling.method)
