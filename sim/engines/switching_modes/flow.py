# SPDX-License-Identifier: Apache-2.0
"""Engines of mode flow."""

from collections.abc import Callable
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.sim.engines.base import ApplicationRun
from flitlab.sim.engines.compare import BothFluidRun
from flitlab.sim.engines.table import Engines, Start, runs


@runs(Flow)
def flow() -> Engines:
    """Return the engines of mode flow, which has neither packets to log or follow nor a load."""
    from flitlab.sim.engines.compiled.flow import FlowRun
    from flitlab.sim.engines.reference.flow import FlowNetwork

    return Engines(_program_start(FlowNetwork), _program_start(FlowRun), BothFluidRun)


def _program_start(run: Callable[..., ApplicationRun]) -> Start:
    """Return the function that starts a run without load and log."""

    def start(
        scenario: Scenario[Flow, Workload], load: float, seed: int, log: bool = False, **options: Any
    ) -> ApplicationRun:
        return run(scenario, seed, **options)

    return start
