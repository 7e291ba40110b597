# SPDX-License-Identifier: Apache-2.0
"""State that the ceilings of one instance share while they are computed."""

from collections.abc import Sequence
from typing import Literal

from flitlab.fluid.ceiling import Ceiling, Method
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode

ROUGH = 0.02
"""Gap of a theta of which only the lower end is used."""


class Context:
    """Loads and program of the ceilings of an instance, and its maximum concurrent flows, each solved once.

    loads: for kinds with a row per load. program: the scenario with a program, None if there is none.
    """

    def __init__(
        self, instance: Instance, loads: Sequence[float] = (), program: Scenario[SwitchingMode, Workload] | None = None
    ):
        self.instance = instance
        self.loads = loads
        self.program = program
        self._flows: dict[tuple[str, Method, float], Ceiling] = {}

    def flow(self, kind: Literal["mcf", "mcf_paths"], method: Method, gap: float) -> Ceiling:
        """The maximum concurrent flow by any routing, or over the routes.

        Parameters
        ----------
        kind : str
            ``mcf`` or ``mcf_paths``.
        method : Method
            How it is solved.
        gap : float
            Relative gap.
        """
        from flitlab.fluid.concurrent import concurrent_flow  # imports compilers

        key = (kind, method, gap)
        if key not in self._flows:
            self._flows[key] = concurrent_flow(self.instance, kind, method, gap)
        return self._flows[key]

    def reached(self, method: Method, gap: float) -> float:
        """A feasible theta: the best known one, or that of a quick solve."""
        known = [ceiling.lower for (kind, _, _), ceiling in self._flows.items() if kind == "mcf"]
        return max(known) if known else self.flow("mcf", method, max(gap, ROUGH)).lower
