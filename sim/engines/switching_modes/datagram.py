# SPDX-License-Identifier: Apache-2.0
"""Engines of mode datagram."""

from flitlab.models.switching.datagram import Datagram
from flitlab.sim.engines.table import Engines, runs, session_start


@runs(Datagram)
def datagram() -> Engines:
    """Return the engines of mode datagram, which run sessions: flows, or the connections of a program."""
    from flitlab.sim.engines.compiled.datagram import CompiledDatagrams
    from flitlab.sim.engines.reference.datagram import ReferenceDatagrams
    from flitlab.sim.engines.transport.run import Lockstep

    return Engines(session_start(ReferenceDatagrams), session_start(CompiledDatagrams), Lockstep)
