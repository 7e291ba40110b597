# SPDX-License-Identifier: Apache-2.0
"""Engines of deflection routing."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection, Rule
from flitlab.sim.engines.table import Engines, Start, network_start, runs


def _deflection_kernel_key(scenario: Scenario[Deflection]) -> str:
    """Return the rule, each of which has kernels of its own."""
    return scenario.switching.rule


@runs(Deflection, kernels=_deflection_kernel_key)
def deflection() -> Engines:
    """Return the engines of deflection routing, and the watches of single packets."""
    from flitlab.sim.engines.compiled import deflection as kernel
    from flitlab.sim.engines.compiled import deflection_frame, deflection_vc, engine
    from flitlab.sim.engines.compiled.deflection_timeline import DeflectionTimelineRun
    from flitlab.sim.engines.reference.deflection import DeflectionNetwork
    from flitlab.sim.engines.reference.deflection_frame import FrameNetwork
    from flitlab.sim.engines.reference.deflection_vc import VcNetwork
    from flitlab.sim.engines.trace import compiled, reference

    reference_start = _by_rule({Rule.POOL: DeflectionNetwork, Rule.VC: VcNetwork, Rule.FRAME: FrameNetwork})
    compiled_start = _by_rule({
        Rule.POOL: network_start(kernel, DeflectionTimelineRun), Rule.VC: partial(engine.start, deflection_vc),
        Rule.FRAME: partial(engine.start, deflection_frame),
    })  # fmt: skip
    watches = {"compiled": compiled.DeflectionWatch, "reference": reference.DeflectionWatch}
    return Engines(reference_start, compiled_start, watches=watches)


def _by_rule(starts: dict[str, Callable[..., Any]]) -> Start:
    """Return the function that starts a run of deflection routing, by its rule."""

    def start(scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        return starts[scenario.switching.rule](scenario, load, seed, log, **options)

    return start
