# SPDX-License-Identifier: Apache-2.0
"""Local search on a random graph of a front: how much beyond random is certified for a demand."""

from collections.abc import Sequence
from dataclasses import dataclass

from flitlab.fluid.design.bounds import Network
from flitlab.fluid.design.demands import Flow
from flitlab.fluid.design.improve import improve_by_prices
from flitlab.fluid.design.options import built
from flitlab.fluid.design.search import Result
from flitlab.models.arrays import Floats
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.sim.design.request import DesignRequest

RANDOM = "rrg"
"""The family of random graphs."""


@dataclass(frozen=True, eq=False)
class Improvement:
    """A network of one plane that was improved. point: the number of that which it began with. demand: its name.

    before, lower, upper: certified throughput of the point, and the interval of the improved network.
    """

    point: int
    demand: str
    topology: Topology
    before: float
    lower: float
    upper: float

    @property
    def sentence(self) -> str:
        """What was reached."""
        return (
            f"Point {self.point} improved for {self.demand}: certainly {self.lower:.3f} instead of {self.before:.3f} "
            f"({100 * (self.lower / self.before - 1):+.1f} %), at most {self.upper:.3f}."
        )


def improvement(request: DesignRequest, front: Sequence[Result]) -> Improvement | None:
    """Improve a random graph of the front by the keys of ``improve``; None without them, or without such a graph.

    Parameters
    ----------
    request : DesignRequest
        The design.
    front : sequence of Result
        Its points, by cost.
    """
    keys = request.improve
    if keys is None:
        return None
    d = next((k for k, demand in enumerate(request.demands) if demand.name == keys.demand), 0)
    demand = request.demands[d]
    random = [k for k, result in enumerate(front) if result.option.kind == RANDOM and keys.point in (None, k + 1)]
    if not random:
        return None
    below = [k for k in random if front[k].lower[d] < 1 - request.tolerance.gap] or random
    k = max(below, key=lambda number: float(front[number].lower[d]))
    option = front[k].option
    topology = built(option)
    if keys.by != "prices":
        power = 1 if keys.by == "hops" else 2
        spec = {"kind": "improved", "of": option.plane(), "demand": demand.traffic, "steps": keys.steps}
        topology = make("topology", **spec, power=power, seed=keys.seed).build()

    def matrix(network: Network) -> Floats:
        flow = demand.on(network)
        assert isinstance(flow, Flow)
        return flow.demand

    solves = keys.solves if keys.by in ("prices", "both") else 0
    best = improve_by_prices(topology, matrix, request.tolerance.gap / 2, solves, keys.seed)
    at_hosts = demand.on(Network.of(best.topology)).upper().value
    upper = min(best.upper, at_hosts)
    return Improvement(k + 1, demand.name, best.topology, float(front[k].lower[d]), min(best.lower, upper), upper)
