# SPDX-License-Identifier: Apache-2.0
"""Engines of ideal switches."""

from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.table import Engines, network_start, runs


@runs(Ideal)
def ideal() -> Engines:
    """Return the engines of ideal switches, whose packets cannot be followed."""
    from flitlab.sim.engines.compiled import ideal as kernel
    from flitlab.sim.engines.compiled.ideal_timeline import IdealTimelineRun
    from flitlab.sim.engines.reference.ideal import IdealNetwork

    return Engines(IdealNetwork, network_start(kernel, IdealTimelineRun))
