# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets of virtual cut-through are under way.

All of it happens between two calls of the kernel, which is the same as without: an output that does not work is one
that is held for ever, and hosts that may not send are never woken.
"""

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inner, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.order import age_key
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.rules.vc import last_resorts
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Change, Vct
from flitlab.sim.engines.base import LOST_FLITS, LOST_PACKETS
from flitlab.sim.engines.compiled import vct
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.pool import free_record
from flitlab.sim.engines.compiled.records import BORN, FLITS, INPUT_VC, LATE, NEXT, NOBODY, OUTPUT, SOURCE
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.vct.rows import ports_of, present, withdraw
from flitlab.sim.engines.compiled.vct.state import (
    BACK,
    BUSY,
    ELIGIBLE,
    FRONT,
    LACKING,
    LEFT,
    QUEUED,
    ROOM,
    SWITCH,
    UPSTREAM,
    WAITING,
)
from flitlab.sim.engines.compiled.wheel import wake


@inner
def _lose(const, state, packet, lost):
    """Count a packet as lost, and free its record; lost: int64 [hosts], flits by source."""
    flits = np.int64(state.pool.packet[packet, FLITS])
    lost[state.pool.packet[packet, SOURCE]] += flits
    state.tally.scalars[LOST_PACKETS] += 1
    state.tally.scalars[LOST_FLITS] += flits
    free_record(state.pool, packet)


@kernel
def _lose_on_links(const, state, dead, gone, tick, lost):
    """Lose the packets whose head has not come over a dead link by ``tick``, and those that a dead switch reads.

    dead, gone: bool [inputs], those behind dead links and those of dead switches. lost: int64 [hosts].
    """
    for ahead in range(state.outputs.mask + 1):
        slot = (tick + ahead) & state.outputs.mask
        packet = np.int64(state.arriving[slot])
        state.arriving[slot] = NOBODY
        while packet != NOBODY:
            following = np.int64(state.pool.packet[packet, NEXT])
            vc = np.int64(state.pool.packet[packet, INPUT_VC])
            if gone[vc // const.vcs] or (dead[vc // const.vcs] and ahead >= const.header):
                state.vc[vc, ROOM] += state.pool.packet[packet, FLITS]
                _lose(const, state, packet, lost)
            else:
                state.pool.packet[packet, NEXT] = state.arriving[slot]
                state.arriving[slot] = packet
            packet = following


@kernel
def _empty(const, state, gone, outputs, lost):
    """Lose the packets in the buffers of dead switches.

    gone: bool [inputs], outputs: bool [outputs], those of dead switches. lost: int64 [hosts].
    """
    for vc in range(len(state.vc)):
        if gone[vc // const.vcs]:
            packet = np.int64(state.vc[vc, FRONT])
            while packet != NOBODY:
                following = np.int64(state.pool.packet[packet, NEXT])
                state.vc[vc, ROOM] += state.pool.packet[packet, FLITS]
                _lose(const, state, packet, lost)
                packet = following
            state.vc[vc, FRONT] = state.vc[vc, BACK] = NOBODY
            state.vc[vc, QUEUED] = 0
    for output in range(len(outputs)):
        if outputs[output]:
            state.rows[output, WAITING] = state.rows[output, LACKING] = 0


@inner
def _take_away(const, state, vc, packet, dead):
    """Take a head out of the rows that it waits in if one of them is that of a dead output; whether it is.

    dead: bool [outputs].
    """
    eligible = np.int64(state.vc[vc, ELIGIBLE])
    key = age_key(np.int64(state.pool.packet[packet, BORN]) if const.oldest_first else eligible, vc)
    output = np.int64(state.pool.packet[packet, OUTPUT])
    if const.rule != ADAPTIVE or output != NOBODY:
        if dead[output]:
            withdraw(const, state, output, key)
        return dead[output]
    here = np.int64(state.vc[vc, SWITCH])
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
        packet = np.int64(state.vc[vc, FRONT])
        if packet == NOBODY or np.int64(state.vc[vc, ELIGIBLE]) >= tick:
            continue
        if not _take_away(const, state, vc, packet, dead):
            continue
        flits, behind = np.int64(state.pool.packet[packet, FLITS]), np.int64(state.pool.packet[packet, NEXT])
        state.vc[vc, ROOM] += flits
        state.vc[vc, LEFT] = tick
        state.vc[vc, FRONT] = behind
        if by_congestion(const.rule):
            state.vc[vc, QUEUED] -= np.uint32(flits)
        _lose(const, state, packet, lost)
        if behind != NOBODY:
            present(const, state, vc, behind, tick)
        upstream = np.int64(state.vc[vc, UPSTREAM])
        if upstream < len(state.rows):
            wake(state.outputs, upstream, tick)


class ChangingVct(CompiledRun):
    """A run of virtual cut-through on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool):
        super().__init__(vct, scenario, load, seed, log)
        assert scenario.timeline is not None
        topology, ports = scenario.topology, self._constants.net.ports
        self._fixed = False  # as routes change
        self._changes = list(scenario.switching.changes_of(scenario.timeline, scenario.routes))
        self._works, self._switches = np.ones(topology.channels, bool), np.ones(topology.switches, bool)
        self._lost = np.zeros(topology.hosts, np.int64)
        network = np.flatnonzero(ports.out_channel != NOBODY)
        self._output = network[np.argsort(ports.out_channel[network])]  # of each channel
        self._free_at = np.zeros(topology.channels, np.int64)  # of dead outputs, when they would be
        self._learned: Change | None = None  # but not in force before the network is empty

    def advance(self, until: int) -> None:
        while self._tick < until:
            self._begin(self._tick)
            last = until if not self._changes else min(until, self._changes[0].step.tick)
            super().advance(last if self._learned is None else self._tick + 1)

    def backlog(self) -> Ints:
        """Flits that each host has created and that are neither delivered nor lost, int64 [hosts]."""
        backlog: Ints = super().backlog() - self._lost
        return backlog

    def _begin(self, tick: int) -> None:
        """Let happen what happens to the network as a tick begins."""
        if self._changes and self._changes[0].step.tick == tick:
            change = self._changes.pop(0)
            self._happen(change, tick)
            self._learned = change if change.step.routes is not None else self._learned
        if self._learned is None:
            return
        dead = self._of_outputs(~self._works)
        _lose_waiting(self._constants, self._state, dead, tick, self._lost)
        self._let_hosts_wait()
        if self._state.pool.free[-1] == len(self._state.pool.packet):
            self._follow(self._learned, tick)

    def _happen(self, change: Change, tick: int) -> None:
        """Let links and switches fail and return."""
        works, switches, state = change.step.works, change.step.switches, self._state
        failed, back = self._works & ~works, works & ~self._works
        gone = self._switches & ~switches
        self._works, self._switches = works, switches
        inputs = np.zeros(len(self._constants.net.ports.in_switch), bool)
        inputs[self._constants.net.ports.out_input[self._output[failed]]] = True
        of_gone = gone[self._constants.net.ports.in_switch]
        _lose_on_links(self._constants, state, inputs, of_gone, tick, self._lost)
        outputs = np.repeat(gone, np.diff(self._constants.net.ports.out_base).astype(np.int64))
        _empty(self._constants, state, of_gone, outputs, self._lost)
        self._free_at[failed] = state.rows[self._output[failed], BUSY]
        state.rows[self._output[failed], BUSY] = LATE
        state.rows[self._output[back], BUSY] = self._free_at[back]
        for channel in np.flatnonzero(back):
            wake(state.outputs, self._output[channel], max(tick, int(self._free_at[channel])))

    def _of_outputs(self, channels: Bools) -> Bools:
        """What is so of channels, of the outputs that lead to them, bool [outputs]."""
        outputs = np.zeros(len(self._state.rows), bool)
        outputs[self._output] = channels
        return outputs

    def _let_hosts_wait(self) -> None:
        """Have no host looked at."""
        self._state.senders.bits[:] = 0
        self._state.senders.summary[:] = 0

    def _follow(self, change: Change, tick: int) -> None:
        """Let hosts send again, by other routes."""
        assert change.step.routes is not None
        routes = change.step.routes.tables(self._topology, change.policy)
        resorts = last_resorts(routes, change.policy)
        self._constants = self._constants._replace(routes=routes, policy=change.policy, resorts=resorts)
        self._learned = None
        for host in range(self._topology.hosts):
            wake(self._state.senders, host, tick)
