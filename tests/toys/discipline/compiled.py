"""The pipe packet by packet: each begins when it has come and the one before it is through."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.sim.engines.packets import DELIVERED, DESTINATION, FLITS, NEVER, SENT, SOURCE, PacketRun


class CompiledPipe(PacketRun):
    def __init__(self, scenario, load, seed, log=False):
        super().__init__(scenario, load, seed, log)
        self.delay = scenario.switching.delay
        self.sends, self.takes = np.zeros((2, scenario.topology.hosts), np.int64)

    def move(self, first, until):
        rows = self.rows
        rows[first:, SENT] = begins(rows[first:, 0], rows[first:, SOURCE], rows[first:, FLITS], self.sends)
        due = np.flatnonzero((rows[:, DELIVERED] == NEVER) & (rows[:, SENT] + self.delay < until))
        due = due[np.lexsort((rows[due, SOURCE], rows[due, SENT]))]
        start = begins(rows[due, SENT] + self.delay, rows[due, DESTINATION], rows[due, FLITS], self.takes)
        rows[due, DELIVERED] = start + rows[due, FLITS] - 1


@njit
def begins(comes, host, flits, free):
    begin = np.empty_like(comes)
    for i in range(len(comes)):
        begin[i] = max(comes[i], free[host[i]])
        free[host[i]] = begin[i] + flits[i]
    return begin
