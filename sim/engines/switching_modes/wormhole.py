# SPDX-License-Identifier: Apache-2.0
"""Engines of wormhole switching."""

from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.table import Engines, network_start, runs


@runs(Wormhole)
def wormhole() -> Engines:
    """Return the engines of wormhole switching, and the watches of single packets."""
    from flitlab.sim.engines.compiled import wormhole as kernel
    from flitlab.sim.engines.compiled.wormhole.timeline import WormholeTimelineRun
    from flitlab.sim.engines.reference.wormhole import WormholeNetwork
    from flitlab.sim.engines.trace import compiled, reference

    watches = {"compiled": compiled.WormholeWatch, "reference": reference.WormholeWatch}
    return Engines(WormholeNetwork, network_start(kernel, WormholeTimelineRun), watches=watches)
