# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets go through ideal switches.

The kernel knows of every packet when it starts, and puts it into the line of those that come over the channel at once.
Those that wait for a channel that does not work are in a line of their own instead, its *limbo*, from which nothing
comes: a record that is no packet stands at its front for ever, and the kernel looks at a line for what is at the front.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inner, kernel
from flitlab.models.rules.route import is_stranded
from flitlab.models.rules.tables import VIA
from flitlab.models.rules.ugal import MINIMALLY
from flitlab.models.scenario import Scenario
from flitlab.models.switching.changing import Change
from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.compiled import ideal
from flitlab.sim.engines.compiled.ideal import BACK, FRONT, join
from flitlab.sim.engines.compiled.pool import allocate_records
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, drop_packet
from flitlab.sim.engines.compiled.timing_wheel import schedule


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


@inner
def _append(state, line, packet):
    """Put a packet at the end of a line."""
    state.pool.packet[packet].next = NONE
    if state.line[line, FRONT] == NONE:
        state.line[line, FRONT] = packet
    else:
        state.pool.packet[state.line[line, BACK]].next = packet
    state.line[line, BACK] = packet


@inner
def _clear(state, limbo):
    """Take all packets out of a limbo, and return the first of them."""
    no_packet = np.int64(state.line[limbo, FRONT])
    first = np.int64(state.pool.packet[no_packet].next)
    state.line[limbo, BACK] = no_packet
    state.pool.packet[no_packet].next = NONE
    return first


@inner
def _target(const, state, packet):
    """Find the switch that a packet goes to."""
    return np.int64(const.net.host_switch[state.pool.packet[packet].dst_host])


@kernel
def _split(const, state, channels, which, failed, failed_switches, tick, dropped_flits):
    """Part what waits for channels, which goes to their limbos, from what is on them or behind them, or lose either.

    Lost is what is on a channel that fails, what is in a switch that is gone, and what can get no further from the end
    of a channel. which, failed: bool [channels]. gone: bool [switches]. lost: int64 [hosts].
    """
    for c in range(len(which)):
        if not which[c]:
            continue
        output, line, head = channels.output[c], channels.line[c], channels.head[c]
        packet = np.int64(state.line[line, FRONT])
        state.line[line, FRONT] = state.line[line, BACK] = NONE
        while packet != NONE:
            following, due = np.int64(state.pool.packet[packet].next), np.int64(state.pool.packet[packet].arrives_at)
            if due - const.crossing[output] >= tick:
                state.free_at[output] -= np.int64(state.pool.packet[packet].flits)
                _append(state, channels.limbo[c], packet)
            elif (
                failed_switches[head]
                or (failed[c] and due - const.header >= tick)
                or is_stranded(const.routes, head, _target(const, state, packet))
            ):
                drop_packet(state, packet, dropped_flits)
            else:
                _append(state, line, packet)
            packet = following
        if failed_switches[channels.tail[c]]:
            packet = _clear(state, channels.limbo[c])
            while packet != NONE:
                following = np.int64(state.pool.packet[packet].next)
                drop_packet(state, packet, dropped_flits)
                packet = following


@kernel
def _resume(const, state, channels, which, tick):
    """Let channels send what is in their limbos; which: bool [channels]."""
    for c in range(len(which)):
        if not which[c]:
            continue
        output = channels.output[c]
        packet = _clear(state, channels.limbo[c])
        while packet != NONE:
            following = np.int64(state.pool.packet[packet].next)
            start = max(state.free_at[output], tick)
            state.free_at[output] = start + np.int64(state.pool.packet[packet].flits)
            state.pool.packet[packet].arrives_at = start + const.crossing[output]
            _append(state, channels.line[c], packet)
            packet = following


@kernel
def _part(const, state, channels, channel_up, dropped_flits):
    """Lose what can get no further from a limbo, and take out what waits for nothing any more.

    That is what a channel that does not work has, or one that leads to where it can get no further. works: bool
    [channels]. lost: int64 [hosts]. Returns the first of them, which know the channel that they waited for.
    """
    first, last = NONE, NONE
    for c in range(len(channel_up)):
        limbo = channels.limbo[c]
        packet = _clear(state, limbo)
        while packet != NONE:
            following, target = np.int64(state.pool.packet[packet].next), _target(const, state, packet)
            if is_stranded(const.routes, channels.tail[c], target):
                drop_packet(state, packet, dropped_flits)
            elif channel_up[c] and not is_stranded(const.routes, channels.head[c], target):
                _append(state, limbo, packet)
            else:
                state.pool.packet[packet].output = c
                state.pool.packet[packet].next = NONE
                if first == NONE:
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
    while packet != NONE:
        following = np.int64(state.pool.packet[packet].next)
        join(const, state, packet, channels.tail[np.int64(state.pool.packet[packet].output)], tick)
        packet = following


@kernel
def _hold(state, channels, channel_up):
    """Let outputs that do not work, bool [channels], be free when all in their limbos is sent after the last tick."""
    for c in range(len(channel_up)):
        if channel_up[c]:
            continue
        flits, packet = np.int64(0), np.int64(state.line[channels.limbo[c], FRONT])
        while packet != NONE:
            flits += np.int64(state.pool.packet[packet].flits)
            packet = np.int64(state.pool.packet[packet].next)
        state.free_at[channels.output[c]] = TICK_LIMIT + flits


@kernel
def _wake_lines(state, lines):
    """Have the first packets of the first so many lines looked at when they are due, and nothing else."""
    state.lines.words[:] = 0
    for line in range(lines):
        packet = np.int64(state.line[line, FRONT])
        if packet != NONE:
            schedule(state.lines, line, np.int64(state.pool.packet[packet].arrives_at))


class IdealTimelineRun(TimelineRun):
    """A run of ideal switches on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool):
        super().__init__(ideal, scenario, load, seed, log)
        self._discipline, topology = scenario.switching, scenario.topology
        net, self._lines = self._constants.net, len(self._state.line)
        limbo = self._lines + np.arange(topology.channels)
        line = net.ports.out_input[self._output_of_channel].astype(np.int64)
        self._channels = Channels(
            output=self._output_of_channel.astype(np.int64), line=line, limbo=limbo, tail=topology.src.astype(np.int64),
            head=topology.dst.astype(np.int64),
        )  # fmt: skip
        no_packet = allocate_records(self._state.pool, len(limbo))
        self._state.pool.packet["next"][no_packet] = NONE  # and no flits
        more = np.column_stack([no_packet, no_packet])
        self._state = self._state._replace(line=np.concatenate([self._state.line, more]))
        switch = np.concatenate([net.ports.in_switch, np.zeros(topology.hosts, np.uint32), topology.dst])
        ports = net.ports._replace(in_switch=switch.astype(np.uint32))
        self._constants = self._constants._replace(net=net._replace(ports=ports))

    def _apply_event(self, failed: Bools, restored: Bools, failed_switches: Bools, tick: int) -> None:
        const, state, channels = self._constants, self._state, self._channels
        touched = failed | failed_switches[channels.tail] | failed_switches[channels.head]
        _split(const, state, channels, touched, failed, failed_switches, tick, self._dropped_flits)
        self._free_at[failed] = state.free_at[self._output_of_channel[failed]]
        const.net.ports.out_input[self._output_of_channel[failed]] = channels.limbo[failed]
        const.net.ports.out_input[self._output_of_channel[restored]] = channels.line[restored]
        state.free_at[self._output_of_channel[restored]] = self._free_at[restored]
        _resume(const, state, channels, restored, tick)
        _hold(state, channels, self._channel_up)
        _wake_lines(state, self._lines)

    def _learn_routes(self, change: Change, tick: int) -> None:
        assert change.step.routes is not None
        routes = self._discipline.tables_after(self._constants.routes, self._topology, change.step.routes)
        self._constants = const = self._constants._replace(routes=routes)
        state, channels, channel_up = self._state, self._channels, self._channel_up
        if routes.form == VIA:
            state.pool.packet["route"] = MINIMALLY
        none = np.zeros(self._topology.channels, bool)
        _split(const, state, channels, ~none, none, np.zeros(self._topology.switches, bool), tick, self._dropped_flits)
        first = _part(const, state, channels, channel_up, self._dropped_flits)
        _resume(const, state, channels, channel_up, tick)
        _hold(state, channels, channel_up)
        _join_again(const, state, channels, first, tick)
        _wake_lines(state, self._lines)
