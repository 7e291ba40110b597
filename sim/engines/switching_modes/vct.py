# SPDX-License-Identifier: Apache-2.0
"""Engines of virtual cut-through."""

from flitlab.models.jit import interpreted
from flitlab.models.rules.tables import Selection
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.partitions import single_thread_reason
from flitlab.sim.engines.table import Engines, network_start, runs


def _vct_kernel_key(scenario: Scenario[Vct]) -> tuple[bool, bool]:
    """Return which kernels of virtual cut-through a scenario needs.

    The first flag: heads of a switch are arbitrated together. The second: routes are chosen by congestion.
    """
    from flitlab.sim.engines.compiled.ugal import uses_congestion

    select = scenario.routes.select
    return scenario.switching.shared_input or select == Selection.ADAPTIVE, bool(interpreted(uses_congestion)(select))


@runs(Vct, single_thread_reason, _vct_kernel_key)
def vct() -> Engines:
    """Return the engines of virtual cut-through, and the watches of single packets."""
    from flitlab.sim.engines.compiled import vct as kernel
    from flitlab.sim.engines.compiled.vct.timeline import VctTimelineRun
    from flitlab.sim.engines.reference.vct import VctNetwork
    from flitlab.sim.engines.trace import compiled, reference

    watches = {"compiled": compiled.VctWatch, "reference": reference.VctWatch}
    return Engines(VctNetwork, network_start(kernel, VctTimelineRun), watches=watches)
