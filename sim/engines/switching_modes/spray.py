# SPDX-License-Identifier: Apache-2.0
"""Engines of mode spray."""

from flitlab.models.switching.spray import Spray
from flitlab.sim.engines.table import Engines, runs, session_start


@runs(Spray)
def spray() -> Engines:
    """Return the engines of mode spray, which run sessions of flows."""
    from flitlab.sim.engines.compiled.spray import CompiledSpray
    from flitlab.sim.engines.reference.spray import ReferenceSpray
    from flitlab.sim.engines.transport.run import Lockstep

    return Engines(session_start(ReferenceSpray), session_start(CompiledSpray), Lockstep)
