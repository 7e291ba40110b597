# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return under hot-potato switching.

All of it happens between two calls of the kernel, for which an output that does not work is one that is held for ever.
"""

import numpy as np

from flitlab.models.arrays import Bools
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.port_sets import has_no_port, pack_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.sim.engines.compiled import deflection
from flitlab.sim.engines.compiled.changes import ChangingRun, lose
from flitlab.sim.engines.compiled.deflection import set_ranked
from flitlab.sim.engines.compiled.due import FULL, packet_in, put, release, take
from flitlab.sim.engines.compiled.records import LATE, NOBODY
from flitlab.sim.engines.compiled.wheel import wake


@inline
def _is_stranded(const, state, packet, here):
    """Tell whether no next hop leads a packet from switch ``here`` to its target."""
    target = np.int64(const.net.host_switch[state.pool.packet[packet].destination])
    return has_no_port(const.routes, target, here)


@kernel
def _lose_on_links(const, state, dead, stranded, lost):
    """Lose the packets whose head is on a dead link, or, ``stranded``, on one that leads to where none leads on.

    dead: bool [outputs]. lost: int64 [hosts], flits by source.
    """
    for tick in range(state.arriving.mask + 1):
        chunk, filled = take(state.arriving, tick)
        while chunk != NOBODY:
            for i in range(filled):
                packet = packet_in(state.arriving, chunk, i)
                there = np.int64(state.pool.packet[packet].where)
                on_link = state.pool.packet[packet].hop > 0
                if on_link and (
                    dead[state.pool.packet[packet].output] or (stranded and _is_stranded(const, state, packet, there))
                ):
                    lose(state, packet, lost)
                else:
                    put(state.arriving, packet, tick)
            chunk, filled = release(state.arriving, chunk), FULL


@kernel
def _lose_in_switches(const, state, gone, stranded, lost):
    """Lose the packets in dead switches, or, ``stranded``, in those from which no next hop leads to their target.

    gone: bool [switches]. lost: int64 [hosts], flits by source.
    """
    for switch in range(len(gone)):
        packet, kept = np.int64(state.place[switch].reading), 0
        state.place[switch].reading = state.place[switch].last_reading = NOBODY
        while packet != NOBODY:
            following = np.int64(state.pool.packet[packet].next)
            state.pool.packet[packet].next = NOBODY
            if gone[switch] or (stranded and _is_stranded(const, state, packet, switch)):
                lose(state, packet, lost)
                state.place[switch].resident -= 1
            elif state.place[switch].reading == NOBODY:
                state.place[switch].reading = state.place[switch].last_reading = packet
            else:
                state.pool.packet[state.place[switch].last_reading].next = packet
                state.place[switch].last_reading = packet
            packet = following
        for i in range(np.int64(state.place[switch].ranked)):
            packet = np.int64(state.ranked[switch, i].packet)
            if gone[switch] or (stranded and _is_stranded(const, state, packet, switch)):
                lose(state, packet, lost)
                state.place[switch].resident -= 1
            else:
                set_ranked(const, state, switch, kept, packet)  # routes may have changed
                kept += 1
        state.place[switch].ranked = kept


class ChangingDeflection(ChangingRun):
    """A run of hot-potato switching on a network that changes (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool):
        super().__init__(deflection, scenario, load, seed, log)

    def _happen(self, failed: Bools, back: Bools, gone: Bools, tick: int) -> None:
        busy = self._state.busy
        self._lose(failed, gone, False)
        self._free_at[failed] = busy[self._output[failed]]
        busy[self._output[failed]] = LATE
        busy[self._output[back]] = self._free_at[back]
        for channel in np.flatnonzero(back):
            self._look(int(self._topology.src[channel]), max(tick, int(self._free_at[channel])))

    def _learn(self, change: PolicyChange, tick: int) -> None:
        assert change.step.routes is not None
        self._constants = self._constants._replace(routes=pack_ports(change.step.routes.ports))
        self._lose(np.zeros(self._topology.channels, bool), np.zeros(self._topology.switches, bool), True)
        for switch in range(self._topology.switches):
            self._look(switch, tick)

    def _lose(self, failed: Bools, gone: Bools, stranded: bool) -> None:
        """Lose what is on channels that fail and in switches, and, ``stranded``, what can get no further."""
        dead = np.zeros(len(self._state.busy), bool)
        dead[self._output[failed]] = True
        _lose_on_links(self._constants, self._state, dead, stranded, self._lost)
        _lose_in_switches(self._constants, self._state, gone, stranded, self._lost)

    def _look(self, switch: int, tick: int) -> None:
        """Have a switch decide at a tick, or at the next slot boundary."""
        slot = self._constants.slot
        wake(self._state.awake, switch, -(-tick // slot) * slot)
