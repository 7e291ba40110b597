# SPDX-License-Identifier: Apache-2.0
"""What the ceilings of one instance have in common while they are computed."""

from collections.abc import Sequence
from typing import Literal

from flitlab.fluid.ceiling import Ceiling, Method
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import Discipline

ROUGH = 0.02
"""Gap of a theta of which only the lower end is of interest."""


class Context:
    """The loads and the program that are asked about, and the maximum concurrent flows, each solved once.

    loads: those that kinds with a row for each load are drawn over. program: the scenario whose hosts run one, None if
    they do not.
    """

    def __init__(
        self, instance: Instance, loads: Sequence[float] = (), program: Scenario[Discipline, Workload] | None = None
    ):
        self.instance = instance
        self.loads = loads
        self.program = program
        self._flows: dict[tuple[str, Method, float], Ceiling] = {}

    def flow(self, kind: Literal["mcf", "mcf_paths"], method: Method, gap: float) -> Ceiling:
        """The maximum concurrent flow by any routing, or over the routes, by a method and to a gap."""
        from flitlab.fluid.concurrent import concurrent_flow  # which brings compilers along

        key = (kind, method, gap)
        if key not in self._flows:
            self._flows[key] = concurrent_flow(self.instance, kind, method, gap)
        return self._flows[key]

    def reached(self, method: Method, gap: float) -> float:
        """A theta that some flow reaches: the best known, or one that is quickly found."""
        known = [ceiling.lower for (kind, _, _), ceiling in self._flows.items() if kind == "mcf"]
        return max(known) if known else self.flow("mcf", method, max(gap, ROUGH)).lower
