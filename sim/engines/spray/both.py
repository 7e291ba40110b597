# SPDX-License-Identifier: Apache-2.0
"""Two runs of sprayed packets in lock-step, compared packet by packet."""

from flitlab.sim.engines.lockstep import Lockstep
from flitlab.sim.engines.spray.base import SprayApplicationRun


class BothSprays(Lockstep[SprayApplicationRun]):
    """Two runs of sprayed packets in lock-step (see :class:`flitlab.sim.engines.spray.base.SprayApplicationRun`)."""

    def ended(self) -> bool:
        return self._compiled.ended()
