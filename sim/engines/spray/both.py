"""Two runs of sprayed packets, compared packet by packet."""

from flitlab.sim.engines.lockstep import Lockstep
from flitlab.sim.engines.spray.base import SprayRun


class BothSprays(Lockstep[SprayRun]):
    """Two runs of sprayed packets (see :class:`flitlab.sim.engines.spray.base.SprayRun`) in lock-step."""

    def ended(self) -> bool:
        return self._compiled.ended()
