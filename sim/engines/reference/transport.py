# SPDX-License-Identifier: Apache-2.0
"""What reference runs of hosts with transports share: the clock, the trace, and programs."""

from typing import Generic

import numpy as np

from flitlab.models.rules.datagram import precedence
from flitlab.sim.engines.base import Execution
from flitlab.sim.engines.reference.clock import Clock
from flitlab.sim.engines.reference.machine_code import machine_code
from flitlab.sim.engines.reference.ranks import Ranks
from flitlab.sim.engines.transport.run import S, Trace, check_lossless


class ReferenceTransport(Generic[S]):
    """A simulation of a session in SimPy.

    ranks: of a program, else None. precedence: order of simultaneous packets (:mod:`flitlab.models.rules.datagram`).
    """

    session: S
    ranks: Ranks | None = None

    def __init__(self, session: S, trace: bool, shuffle: int = 0):
        self.session = session
        self.clock = Clock(shuffle)
        self.precedence = machine_code(precedence, session.seed, 0, 0)
        self._trace: list[tuple[int, int, int]] | None = [] if trace else None

    def trace_packet(self, subflow: int, number: int) -> None:
        """Append a received data packet to the trace, if one is kept."""
        if self._trace is not None:
            self._trace.append((self.clock.now, subflow, number))

    def trace(self) -> Trace:
        if self._trace is None:
            raise ValueError("the run was started without trace=True")
        return Trace(*np.array(self._trace, np.int64).reshape(-1, 3).T.copy())

    def advance(self, until: int) -> None:
        if until > self.clock.now:
            self.clock.run(int(until))
        if self.ranks is not None and not self.session.retransmits:
            check_lossless(self._dropped())

    def _dropped(self) -> int:
        """Return the packets dropped or trimmed so far."""
        raise NotImplementedError

    def deadlock(self) -> tuple[int, ...]:
        """Return the ports of a cycle of paused servers, in order; none here, where nothing pauses."""
        return ()

    def done(self) -> bool:
        return self.ranks is not None and self.ranks.unfinished == 0

    def execution(self) -> Execution:
        assert self.ranks is not None
        return self.ranks.execution()
