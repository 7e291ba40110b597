"""The pipe packet by packet: each begins when it has come and the one before it is through."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.sim.engines.packets import NEVER, Col, PacketRun


class CompiledPipe(PacketRun):
    def __init__(self, scenario, load, seed, log=False):
        super().__init__(scenario, load, seed, log)
        self.delay = scenario.switching.delay
        self.sends, self.takes = np.zeros((2, scenario.topology.hosts), np.int64)

    def move(self, first, until):
        rows = self.rows
        rows[first:, Col.SENT] = begins(rows[first:, 0], rows[first:, Col.SOURCE], rows[first:, Col.FLITS], self.sends)
        due = np.flatnonzero((rows[:, Col.DELIVERED] == NEVER) & (rows[:, Col.SENT] + self.delay < until))
        due = due[np.lexsort((rows[due, Col.SOURCE], rows[due, Col.SENT]))]
        start = begins(rows[due, Col.SENT] + self.delay, rows[due, Col.DESTINATION], rows[due, Col.FLITS], self.takes)
        rows[due, Col.DELIVERED] = start + rows[due, Col.FLITS] - 1


@njit
def begins(comes, host, flits, free):
    begin = np.empty_like(comes)
    for i in range(len(comes)):
        begin[i] = max(comes[i], free[host[i]])
        free[host[i]] = begin[i] + flits[i]
    return begin
