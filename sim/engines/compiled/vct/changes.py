# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets of virtual cut-through are under way.

All of it happens between two calls of the kernel, which is the same as without: an output that does not work is one
that is held for ever.
"""

import numpy as np

from flitlab.models.arrays import Bools
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.order import age_key
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.compiled import vct
from flitlab.sim.engines.compiled.changes import DrainingRun, lose
from flitlab.sim.engines.compiled.due import FULL, packet_in, put, release, take
from flitlab.sim.engines.compiled.records import LATE, NOBODY
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.vct.rows import ports_of, present, withdraw
from flitlab.sim.engines.compiled.wheel import wake


@kernel
def _lose_on_links(const, state, dead, gone, tick, lost):
    """Lose the packets whose head has not come over a dead link by ``tick``, and those that a dead switch reads.

    dead, gone: bool [inputs], those behind dead links and those of dead switches. lost: int64 [hosts].
    """
    for ahead in range(state.outputs.mask + 1):
        chunk, filled = take(state.arriving, tick + ahead)
        while chunk != NOBODY:
            for i in range(filled):
                packet = packet_in(state.arriving, chunk, i)
                vc = np.int64(state.pool.packet[packet].input_vc)
                if gone[vc // const.vcs] or (dead[vc // const.vcs] and ahead >= const.header):
                    state.room[state.vc[vc].credit] += np.uint32(state.pool.packet[packet].flits)
                    lose(state, packet, lost)
                else:
                    put(state.arriving, packet, tick + ahead)
            chunk, filled = release(state.arriving, chunk), FULL


@kernel
def _empty(const, state, gone, outputs, lost):
    """Lose the packets in the buffers of dead switches.

    gone: bool [inputs], outputs: bool [outputs], those of dead switches. lost: int64 [hosts].
    """
    for vc in range(len(state.vc)):
        if gone[vc // const.vcs]:
            packet = np.int64(state.vc[vc].front)
            while packet != NOBODY:
                following = np.int64(state.pool.packet[packet].next)
                state.room[state.vc[vc].credit] += np.uint32(state.pool.packet[packet].flits)
                lose(state, packet, lost)
                packet = following
            state.vc[vc].front = state.vc[vc].back = NOBODY
            state.vc[vc].queued = 0
    for output in range(len(outputs)):
        if outputs[output]:
            state.rows[output].waiting = 0


@inline
def _take_away(const, state, vc, packet, dead):
    """Take a head out of the rows that it waits in if one of them is that of a dead output; whether it is.

    dead: bool [outputs].
    """
    record = state.pool.packet[packet]
    eligible = np.int64(state.vc[vc].eligible)
    key = age_key(np.int64(record.born) if const.oldest_first else eligible, vc)
    output = np.int64(record.output)
    if const.rule != ADAPTIVE or output != NOBODY:
        if dead[output]:
            withdraw(const, state, output, key)
        return dead[output]
    here = np.int64(state.vc[vc].switch)
    base, found = np.int64(const.net.ports.out_base[here]), False
    ports = left = ports_of(const, state, packet, here)
    while left:
        found |= dead[base + lowest(left)]
        left &= left - np.uint64(1)
    while found and ports:
        withdraw(const, state, base + lowest(ports), key)
        ports &= ports - np.uint64(1)
    return found


@kernel
def _lose_waiting(const, state, dead, tick, lost):
    """Lose the heads that ask for a dead output since before ``tick``; those behind them come to the front.

    dead: bool [outputs]. lost: int64 [hosts].
    """
    for vc in range(len(state.vc)):
        packet = np.int64(state.vc[vc].front)
        if packet == NOBODY or np.int64(state.vc[vc].eligible) >= tick:
            continue
        if not _take_away(const, state, vc, packet, dead):
            continue
        flits, behind = np.int64(state.pool.packet[packet].flits), np.int64(state.pool.packet[packet].next)
        state.room[state.vc[vc].credit] += np.uint32(flits)
        state.vc[vc].left = tick
        state.vc[vc].front = behind
        if by_congestion(const.rule):
            state.vc[vc].queued -= np.uint32(flits)
        lose(state, packet, lost)
        if behind != NOBODY:
            present(const, state, vc, behind, tick)
        sender = np.int64(state.vc[vc].credit) >> const.vc_bits
        if sender < len(state.rows):
            wake(state.outputs, sender, tick)


class ChangingVct(DrainingRun):
    """A run of virtual cut-through on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool):
        super().__init__(vct, scenario, load, seed, log)

    def _happen(self, failed: Bools, back: Bools, gone: Bools, tick: int) -> None:
        state = self._state
        of_gone = gone[self._constants.net.ports.in_switch]
        _lose_on_links(self._constants, state, self._inputs_behind(failed), of_gone, tick, self._lost)
        outputs = np.repeat(gone, np.diff(self._constants.net.ports.out_base).astype(np.int64))
        _empty(self._constants, state, of_gone, outputs, self._lost)
        self._free_at[failed] = state.rows["busy"][self._output[failed]]
        state.rows["busy"][self._output[failed]] = LATE
        state.rows["busy"][self._output[back]] = self._free_at[back]
        for channel in np.flatnonzero(back):
            wake(state.outputs, self._output[channel], max(tick, int(self._free_at[channel])))
        base = self._constants.net.ports.out_base
        for switch in np.unique(self._topology.src[failed]):  # no head waits for a drawn channel that has failed
            for output in range(base[switch], base[switch + 1]):
                wake(state.outputs, output, tick)

    def _lose_waiting(self, tick: int) -> None:
        _lose_waiting(self._constants, self._state, self._of_outputs(~self._works), tick, self._lost)
