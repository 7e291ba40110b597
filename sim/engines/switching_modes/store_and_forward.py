# SPDX-License-Identifier: Apache-2.0
"""Engines of store and forward."""

from flitlab.models.switching.store_and_forward import StoreAndForward
from flitlab.sim.engines.table import Engines, runs


@runs(StoreAndForward)
def store_and_forward() -> Engines:
    """Return the engines of store and forward."""
    from flitlab.sim.engines.compiled.store_and_forward import CompiledStoreAndForward
    from flitlab.sim.engines.reference.store_and_forward import ReferenceStoreAndForward

    return Engines(ReferenceStoreAndForward, CompiledStoreAndForward)
