# SPDX-License-Identifier: Apache-2.0
"""Two datagram runs in lock-step, compared packet by packet."""

from flitlab.models.arrays import Ints
from flitlab.sim.engines.datagram.base import DatagramApplicationRun
from flitlab.sim.engines.lockstep import Lockstep


class BothDatagrams(Lockstep[DatagramApplicationRun]):
    """Two runs of datagrams in lock-step (see :class:`flitlab.sim.engines.datagram.base.DatagramApplicationRun`)."""

    def in_flight(self) -> Ints:
        return self._compiled.in_flight()
