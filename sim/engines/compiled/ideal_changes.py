# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets go through ideal switches.

The kernel knows of every packet when it starts, and puts it into the line of those that come over the channel at once.
Those that wait for a channel that does not work are in a line of their own instead, its *limbo*, from which nothing
comes: a record that is no packet stands at its front for ever, and the kernel looks at a line for what is at the front.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.route import is_stranded
from flitlab.models.rules.tables import VIA
from flitlab.models.rules.ugal import MINIMAL_ROUTE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.compiled import ideal
from flitlab.sim.engines.compiled.changes import ChangingRun, lose
from flitlab.sim.engines.compiled.ideal import BACK, FRONT, join
from flitlab.sim.engines.compiled.pool import take_records
from flitlab.sim.engines.compiled.records import LATE, NOBODY
from flitlab.sim.engines.compiled.wheel import wake


class Channels(NamedTuple):
    """Where channels between switches are, int64 [channels] each.

    output: of the switch that each leaves. line: of the packets that come over it. limbo: the line of those that wait
    while it does not work. tail, head: the switches at its ends.
    """

    output: Ints
    line: Ints
    limbo: Ints
    tail: Ints
    head: Ints


@inline
def _append(state, line, packet):
    """Put a packet at the end of a line."""
    state.pool.packet[packet].next = NOBODY
    if state.line[line, FRONT] == NOBODY:
        state.line[line, FRONT] = packet
    else:
        state.pool.packet[state.line[line, BACK]].next = packet
    state.line[line, BACK] = packet


@inline
def _clear(state, limbo):
    """Take all packets out of a limbo, and return the first of them."""
    no_packet = np.int64(state.line[limbo, FRONT])
    first = np.int64(state.pool.packet[no_packet].next)
    state.line[limbo, BACK] = no_packet
    state.pool.packet[no_packet].next = NOBODY
    return first


@inline
def _target(const, state, packet):
    """Find the switch that a packet goes to."""
    return np.int64(const.net.host_switch[state.pool.packet[packet].destination])


@kernel
def _split(const, state, channels, which, failed, gone, tick, lost):
    """Part what waits for channels, which goes to their limbos, from what is on them or behind them, or lose either.

    Lost is what is on a channel that fails, what is in a switch that is gone, and what can get no further from the end
    of a channel. which, failed: bool [channels]. gone: bool [switches]. lost: int64 [hosts].
    """
    for c in range(len(which)):
        if not which[c]:
            continue
        output, line, head = channels.output[c], channels.line[c], channels.head[c]
        packet = np.int64(state.line[line, FRONT])
        state.line[line, FRONT] = state.line[line, BACK] = NOBODY
        while packet != NOBODY:
            following, due = np.int64(state.pool.packet[packet].next), np.int64(state.pool.packet[packet].due)
            if due - const.crossing[output] >= tick:
                state.free[output] -= np.int64(state.pool.packet[packet].flits)
                _append(state, channels.limbo[c], packet)
            elif (
                gone[head]
                or (failed[c] and due - const.header >= tick)
                or is_stranded(const.routes, head, _target(const, state, packet))
            ):
                lose(state, packet, lost)
            else:
                _append(state, line, packet)
            packet = following
        if gone[channels.tail[c]]:
            packet = _clear(state, channels.limbo[c])
            while packet != NOBODY:
                following = np.int64(state.pool.packet[packet].next)
                lose(state, packet, lost)
                packet = following


@kernel
def _resume(const, state, channels, which, tick):
    """Let channels send what is in their limbos; which: bool [channels]."""
    for c in range(len(which)):
        if not which[c]:
            continue
        output = channels.output[c]
        packet = _clear(state, channels.limbo[c])
        while packet != NOBODY:
            following = np.int64(state.pool.packet[packet].next)
            start = max(state.free[output], tick)
            state.free[output] = start + np.int64(state.pool.packet[packet].flits)
            state.pool.packet[packet].due = start + const.crossing[output]
            _append(state, channels.line[c], packet)
            packet = following


@kernel
def _part(const, state, channels, works, lost):
    """Lose what can get no further from a limbo, and take out what waits for nothing any more.

    That is what a channel that does not work has, or one that leads to where it can get no further. works: bool
    [channels]. lost: int64 [hosts]. Returns the first of them, which know the channel that they waited for.
    """
    first, last = NOBODY, NOBODY
    for c in range(len(works)):
        limbo = channels.limbo[c]
        packet = _clear(state, limbo)
        while packet != NOBODY:
            following, target = np.int64(state.pool.packet[packet].next), _target(const, state, packet)
            if is_stranded(const.routes, channels.tail[c], target):
                lose(state, packet, lost)
            elif works[c] and not is_stranded(const.routes, channels.head[c], target):
                _append(state, limbo, packet)
            else:
                state.pool.packet[packet].output = c
                state.pool.packet[packet].next = NOBODY
                if first == NOBODY:
                    first = packet
                else:
                    state.pool.packet[last].next = packet
                last = packet
            packet = following
    return first


@kernel
def _join_again(const, state, channels, first, tick):
    """Let packets, from a first one on, join the queues of the outputs that they choose now."""
    packet = np.int64(first)
    while packet != NOBODY:
        following = np.int64(state.pool.packet[packet].next)
        join(const, state, packet, channels.tail[np.int64(state.pool.packet[packet].output)], tick)
        packet = following


@kernel
def _hold(state, channels, works):
    """Let outputs that do not work, bool [channels], be free when all in their limbos is sent after the last tick."""
    for c in range(len(works)):
        if works[c]:
            continue
        flits, packet = np.int64(0), np.int64(state.line[channels.limbo[c], FRONT])
        while packet != NOBODY:
            flits += np.int64(state.pool.packet[packet].flits)
            packet = np.int64(state.pool.packet[packet].next)
        state.free[channels.output[c]] = LATE + flits


@kernel
def _wake_lines(state, lines):
    """Have the first packets of the first so many lines looked at when they are due, and nothing else."""
    state.lines.words[:] = 0
    for line in range(lines):
        packet = np.int64(state.line[line, FRONT])
        if packet != NOBODY:
            wake(state.lines, line, np.int64(state.pool.packet[packet].due))


class ChangingIdeal(ChangingRun):
    """A run of ideal switches on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool):
        super().__init__(ideal, scenario, load, seed, log)
        self._discipline, topology = scenario.switching, scenario.topology
        net, self._lines = self._constants.net, len(self._state.line)
        limbo = self._lines + np.arange(topology.channels)
        line = net.ports.out_input[self._output].astype(np.int64)
        self._channels = Channels(
            output=self._output.astype(np.int64), line=line, limbo=limbo, tail=topology.src.astype(np.int64),
            head=topology.dst.astype(np.int64),
        )  # fmt: skip
        no_packet = take_records(self._state.pool, len(limbo))
        self._state.pool.packet["next"][no_packet] = NOBODY  # and no flits
        more = np.column_stack([no_packet, no_packet])
        self._state = self._state._replace(line=np.concatenate([self._state.line, more]))
        switch = np.concatenate([net.ports.in_switch, np.zeros(topology.hosts, np.uint32), topology.dst])
        ports = net.ports._replace(in_switch=switch.astype(np.uint32))
        self._constants = self._constants._replace(net=net._replace(ports=ports))

    def _happen(self, failed: Bools, back: Bools, gone: Bools, tick: int) -> None:
        const, state, channels = self._constants, self._state, self._channels
        touched = failed | gone[channels.tail] | gone[channels.head]
        _split(const, state, channels, touched, failed, gone, tick, self._lost)
        self._free_at[failed] = state.free[self._output[failed]]
        const.net.ports.out_input[self._output[failed]] = channels.limbo[failed]
        const.net.ports.out_input[self._output[back]] = channels.line[back]
        state.free[self._output[back]] = self._free_at[back]
        _resume(const, state, channels, back, tick)
        _hold(state, channels, self._works)
        _wake_lines(state, self._lines)

    def _learn(self, change: PolicyChange, tick: int) -> None:
        assert change.step.routes is not None
        routes = self._discipline.tables_after(self._constants.routes, self._topology, change.step.routes)
        self._constants = const = self._constants._replace(routes=routes)
        state, channels, works = self._state, self._channels, self._works
        if routes.form == VIA:
            state.pool.packet["way"] = MINIMAL_ROUTE
        none = np.zeros(self._topology.channels, bool)
        _split(const, state, channels, ~none, none, np.zeros(self._topology.switches, bool), tick, self._lost)
        first = _part(const, state, channels, works, self._lost)
        _resume(const, state, channels, works, tick)
        _hold(state, channels, works)
        _join_again(const, state, channels, first, tick)
        _wake_lines(state, self._lines)
