# SPDX-License-Identifier: Apache-2.0
"""Failures, returns and rate changes of links and switches with ideal switches.

The kernel knows the arrival of every packet when it starts, and puts it into the channel's delivery queue at once.
Packets that wait for a failed channel are in its *blocked queue* instead, from which nothing arrives: a record that is
no packet stays at its front, and the kernel schedules a queue by its front.
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
from flitlab.sim.engines.compiled.ideal import BACK, FRONT, join_output
from flitlab.sim.engines.compiled.pool import allocate_records
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, drop_packet
from flitlab.sim.engines.compiled.timing_wheel import schedule


class Channels(NamedTuple):
    """Queues and ends of the channels between switches, int64 [channels] each.

    output: that feeds the channel. delivery_queue: of the packets in flight. blocked_queue: of the packets that wait
    while it has failed. src_switch, dst_switch: its ends.
    """

    output: Ints
    delivery_queue: Ints
    blocked_queue: Ints
    src_switch: Ints
    dst_switch: Ints


@inline
def _append(state, queue, packet):
    """Append a packet to a queue."""
    state.pool.packet[packet].next = NONE
    if state.delivery_queue[queue, FRONT] == NONE:
        state.delivery_queue[queue, FRONT] = packet
    else:
        state.pool.packet[state.delivery_queue[queue, BACK]].next = packet
    state.delivery_queue[queue, BACK] = packet


@inline
def _clear(state, blocked_queue):
    """Empty a blocked queue, and return its first packet."""
    no_packet = np.int64(state.delivery_queue[blocked_queue, FRONT])
    first_packet = np.int64(state.pool.packet[no_packet].next)
    state.delivery_queue[blocked_queue, BACK] = no_packet
    state.pool.packet[no_packet].next = NONE
    return first_packet


@inline
def _dst_switch(const, state, packet):
    """Return the destination switch of a packet."""
    return np.int64(const.net.host_switch[state.pool.packet[packet].dst_host])


@kernel
def _separate_waiting(const, state, channels, selected, failed, failed_switches, tick, dropped_flits):
    """Separate the packets that wait for channels from those in flight: the former move to blocked queues.

    Dropped are packets on channels that fail, in failed switches, and stranded at the end of a channel. selected,
    failed: bool [channels]. failed_switches: bool [switches]. dropped_flits: int64 [hosts], by source.
    """
    for c in range(len(selected)):
        if not selected[c]:
            continue
        output, queue, dst_switch = channels.output[c], channels.delivery_queue[c], channels.dst_switch[c]
        packet = np.int64(state.delivery_queue[queue, FRONT])
        state.delivery_queue[queue, FRONT] = state.delivery_queue[queue, BACK] = NONE
        while packet != NONE:
            next_packet, arrives_at = (
                np.int64(state.pool.packet[packet].next),
                np.int64(state.pool.packet[packet].arrives_at),
            )
            if arrives_at - const.transit_ticks[output] >= tick:
                state.free_at[output] -= np.int64(state.pool.packet[packet].flits)
                _append(state, channels.blocked_queue[c], packet)
            elif (
                failed_switches[dst_switch]
                or (failed[c] and arrives_at - const.header_ticks >= tick)
                or is_stranded(const.routes, dst_switch, _dst_switch(const, state, packet))
            ):
                drop_packet(state, packet, dropped_flits)
            else:
                _append(state, queue, packet)
            packet = next_packet
        if failed_switches[channels.src_switch[c]]:
            packet = _clear(state, channels.blocked_queue[c])
            while packet != NONE:
                next_packet = np.int64(state.pool.packet[packet].next)
                drop_packet(state, packet, dropped_flits)
                packet = next_packet


@kernel
def _resume(const, state, channels, selected, tick):
    """Let channels send the packets of their blocked queues; selected: bool [channels]."""
    for c in range(len(selected)):
        if not selected[c]:
            continue
        output = channels.output[c]
        packet = _clear(state, channels.blocked_queue[c])
        while packet != NONE:
            next_packet = np.int64(state.pool.packet[packet].next)
            start = max(state.free_at[output], tick)
            state.free_at[output] = start + np.int64(state.pool.packet[packet].flits)
            state.pool.packet[packet].arrives_at = start + const.transit_ticks[output]
            _append(state, channels.delivery_queue[c], packet)
            packet = next_packet


@kernel
def _extract_rerouted(const, state, channels, channel_up, dropped_flits):
    """Extract the packets to re-route from blocked queues, and drop stranded ones.

    Re-routed are packets of failed channels, and of channels to a switch without a next hop for them. channel_up: bool
    [channels]. dropped_flits: int64 [hosts]. Returns the first of a list of packets, whose ``output`` is the channel
    that they waited for.
    """
    first_packet, last_packet = NONE, NONE
    for c in range(len(channel_up)):
        blocked_queue = channels.blocked_queue[c]
        packet = _clear(state, blocked_queue)
        while packet != NONE:
            next_packet, dst_switch = np.int64(state.pool.packet[packet].next), _dst_switch(const, state, packet)
            if is_stranded(const.routes, channels.src_switch[c], dst_switch):
                drop_packet(state, packet, dropped_flits)
            elif channel_up[c] and not is_stranded(const.routes, channels.dst_switch[c], dst_switch):
                _append(state, blocked_queue, packet)
            else:
                state.pool.packet[packet].output = c
                state.pool.packet[packet].next = NONE
                if first_packet == NONE:
                    first_packet = packet
                else:
                    state.pool.packet[last_packet].next = packet
                last_packet = packet
            packet = next_packet
    return first_packet


@kernel
def _requeue(const, state, channels, first_packet, tick):
    """Let the packets of a list join the queues of newly chosen outputs."""
    packet = np.int64(first_packet)
    while packet != NONE:
        next_packet = np.int64(state.pool.packet[packet].next)
        join_output(const, state, packet, channels.src_switch[np.int64(state.pool.packet[packet].output)], tick)
        packet = next_packet


@kernel
def _block_outputs(state, channels, channel_up):
    """Set the outputs of failed channels free after the last tick, plus the flits in their blocked queues."""
    for c in range(len(channel_up)):
        if channel_up[c]:
            continue
        flits, packet = np.int64(0), np.int64(state.delivery_queue[channels.blocked_queue[c], FRONT])
        while packet != NONE:
            flits += np.int64(state.pool.packet[packet].flits)
            packet = np.int64(state.pool.packet[packet].next)
        state.free_at[channels.output[c]] = TICK_LIMIT + flits


@kernel
def _schedule_queues(state, queues):
    """Schedule the first ``queues`` delivery queues by their first packet, and nothing else."""
    state.queue_wheel.words[:] = 0
    for queue in range(queues):
        packet = np.int64(state.delivery_queue[queue, FRONT])
        if packet != NONE:
            schedule(state.queue_wheel, queue, np.int64(state.pool.packet[packet].arrives_at))


class IdealTimelineRun(TimelineRun):
    """A compiled run of ideal switches on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool):
        super().__init__(ideal, scenario, load, seed, log)
        self._switching, topology = scenario.switching, scenario.topology
        net, self._delivery_queues = self._constants.net, len(self._state.delivery_queue)
        blocked_queue = self._delivery_queues + np.arange(topology.channels)
        queue = net.ports.out_input[self._output_of_channel].astype(np.int64)
        self._channels = Channels(
            output=self._output_of_channel.astype(np.int64), delivery_queue=queue, blocked_queue=blocked_queue,
            src_switch=topology.src.astype(np.int64), dst_switch=topology.dst.astype(np.int64),
        )  # fmt: skip
        no_packet = allocate_records(self._state.pool, len(blocked_queue))
        self._state.pool.packet["next"][no_packet] = NONE  # it has no flits
        blocked_queues = np.column_stack([no_packet, no_packet])
        self._state = self._state._replace(delivery_queue=np.concatenate([self._state.delivery_queue, blocked_queues]))
        switch = np.concatenate([net.ports.in_switch, np.zeros(topology.hosts, np.uint32), topology.dst])
        ports = net.ports._replace(in_switch=switch.astype(np.uint32))
        self._constants = self._constants._replace(net=net._replace(ports=ports))

    def _apply_event(self, failed: Bools, restored: Bools, failed_switches: Bools, tick: int) -> None:
        const, state, channels = self._constants, self._state, self._channels
        touched = failed | failed_switches[channels.src_switch] | failed_switches[channels.dst_switch]
        _separate_waiting(const, state, channels, touched, failed, failed_switches, tick, self._dropped_flits)
        self._free_at[failed] = state.free_at[self._output_of_channel[failed]]
        const.net.ports.out_input[self._output_of_channel[failed]] = channels.blocked_queue[failed]
        const.net.ports.out_input[self._output_of_channel[restored]] = channels.delivery_queue[restored]
        state.free_at[self._output_of_channel[restored]] = self._free_at[restored]
        _resume(const, state, channels, restored, tick)
        _block_outputs(state, channels, self._channel_up)
        _schedule_queues(state, self._delivery_queues)

    def _learn_routes(self, change: PolicyChange, tick: int) -> None:
        assert change.step.routes is not None
        routes = self._switching.tables_after(self._constants.routes, self._topology, change.step.routes)
        self._constants = const = self._constants._replace(routes=routes)
        state, channels, channel_up = self._state, self._channels, self._channel_up
        if routes.form == VIA:
            state.pool.packet["route"] = MINIMAL_ROUTE
        none = np.zeros(self._topology.channels, bool)
        _separate_waiting(
            const, state, channels, ~none, none, np.zeros(self._topology.switches, bool), tick, self._dropped_flits
        )
        first_packet = _extract_rerouted(const, state, channels, channel_up, self._dropped_flits)
        _resume(const, state, channels, channel_up, tick)
        _block_outputs(state, channels, channel_up)
        _requeue(const, state, channels, first_packet, tick)
        _schedule_queues(state, self._delivery_queues)
