# SPDX-License-Identifier: Apache-2.0
"""Engines of the relay."""

from flitlab.models.switching.relay import Relay
from flitlab.sim.engines.table import Engines, runs


@runs(Relay)
def relay() -> Engines:
    """Return the engines of the relay."""
    from flitlab.sim.engines.compiled.relay import CompiledRelay
    from flitlab.sim.engines.reference.relay import ReferenceRelay

    return Engines(ReferenceRelay, CompiledRelay)
