"""Two datagram runs, compared packet by packet."""

from flitlab.models.arrays import Floats, Ints
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.datagram.base import DatagramApplicationRun
from flitlab.sim.engines.lockstep import Lockstep, compare_fields


class BothDatagrams(Lockstep[DatagramApplicationRun]):
    """Two runs of datagrams (see :class:`flitlab.sim.engines.datagram.base.DatagramApplicationRun`) in lock-step."""

    def in_flight(self) -> Ints:
        return self._compiled.in_flight()

    def done(self) -> bool:
        return self._compiled.done()

    @property
    def latest(self) -> int:
        return self._compiled.latest

    def standing(self) -> Standing:
        return self._compiled.standing()

    def execution(self) -> Execution:
        ours = self._compiled.execution()
        compare_fields(ours, self._reference.execution(), "in operations")
        return ours

    def carried(self) -> Ints | Floats:
        return self._compiled.carried()
