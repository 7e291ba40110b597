# SPDX-License-Identifier: Apache-2.0
"""Choice of the fastest algorithm of a collective on a network, for programs with ``best``."""

import numpy as np
from scipy import sparse

from flitlab.fluid.hosts import host_bound
from flitlab.fluid.makespan import empty_latencies
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.split import split_use
from flitlab.models.application.builder import Builder, Round
from flitlab.models.application.messages import total_flits
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.registry import make
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.traffic.table import table_traffic


class Rounds:
    """Estimated ticks of algorithms on the network of a scenario, with the placement of its ranks.

    A round takes its longest calculation, plus the latency of its farthest message in an empty network, plus the time
    of the most loaded channel, with the split of the routing. Rounds do not overlap, and other steps do not interfere.
    """

    def __init__(self, scenario: Scenario[SwitchingMode, Workload]) -> None:
        self.scenario = scenario
        self._between = empty_latencies(scenario)
        self._before = float(scenario.switching.serialization_ticks(scenario.topology, np.zeros(1))[0])
        self._routes = _split(scenario)
        self._known: dict[bytes, float] = {}

    def ticks(self, builder: Builder) -> float:
        """The estimate of an algorithm; the builder holds only its rounds."""
        return sum(map(self._round, builder.rounds()))

    def _round(self, round_messages: Round) -> float:
        work, switching_mode = self.scenario.work, self.scenario.switching
        calculated = float(round_messages.ns / work.messages.tick_ns)
        ends = work.host[round_messages.source], work.host[round_messages.target]
        crosses = ends[0] != ends[1]
        if not crosses.any():
            return calculated
        source, target = (end[crosses] for end in ends)
        flits = total_flits(round_messages.size[crosses], work.messages) * switching_mode.weight(work.messages)
        key = np.concatenate([source, target, flits]).astype(np.int64).tobytes()
        if key not in self._known:
            demand = sparse.coo_array((flits.astype(float), (source, target)), (self.scenario.topology.hosts,) * 2)
            first = float(self._between(source, target).max()) + self._before
            self._known[key] = first + self._carried(demand.tocsr())
        return calculated + self._known[key]

    def _carried(self, demand: sparse.csr_array) -> float:
        """Ticks in which all channels have carried a demand [hosts, hosts] in flits."""
        topology = self.scenario.topology
        traffic = table_traffic("application", topology, demand)
        busiest = max(demand.sum(axis=0).max(), demand.sum(axis=1).max())
        full = 1 / host_bound(topology, traffic)
        use: Floats = np.zeros(1)
        if traffic.switch_demand.any():
            use = split_use(Problem.of(topology, traffic, self._routes), topology, traffic)
        return float(busiest * max(full, use.max()) * self.scenario.switching.flits_per_tick(topology))


def _split(scenario: Scenario[SwitchingMode, Workload]) -> Routes:
    """The routes of a scenario if they fix the split of every demand, else minimal routes."""
    try:
        Problem.of(scenario.topology, scenario.instance.traffic, scenario.instance.routes)
    except FluidError:
        minimal = make("routing", kind="minimal")
        assert isinstance(minimal, RoutingSpec)
        return minimal.build(scenario.topology)
    assert scenario.instance.routes is not None
    return scenario.instance.routes
