# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail, slow down and return with ideal switches.

The kernel knows the arrival of every packet when it starts, and puts it into the channel's delivery queue at once.
Packets that wait for a failed channel are in its *blocked queue* instead, from which nothing arrives: a record that is
no packet stays at its front, and the kernel schedules a queue by its front. While a change is applied, the packets of
channels are in no queue. Where channels differ in speed, a packet that would starve the output that it has chosen is at
the front of the delivery queue of its input: it has been *read*.
"""

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.route import are_stranded
from flitlab.models.rules.tables import RouteForm
from flitlab.models.rules.ugal import MINIMAL_ROUTE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.ideal import Ideal
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.compiled import ideal
from flitlab.sim.engines.compiled.ideal import BACK, FRONT, choose_output, join_output
from flitlab.sim.engines.compiled.pool import allocate_records
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, link_lists, linked_lists
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.faults import Residents


@kernel
def _join_outputs(const, state, packets, switches, tick):
    """Let packets join the queues of newly chosen outputs; packets, switches: int64 [packets]."""
    for i in range(len(packets)):
        join_output(const, state, packets[i], switches[i], tick)


@kernel
def _choose_outputs(const, state, packets, switches, tick):
    """Let packets choose their outputs again; packets, switches: int64 [packets]."""
    for i in range(len(packets)):
        state.pool.packet[packets[i]].output = choose_output(const, state, packets[i], switches[i], tick)


class IdealTimelineRun(TimelineRun):
    """A compiled run of ideal switches on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Ideal], load: float, seed: int, log: bool):
        super().__init__(ideal, scenario, load, seed, log)
        topology, net, self._delivery_queues = scenario.topology, self._constants.net, len(self._state.delivery_queue)
        blocked_queues = self._delivery_queues + np.arange(topology.channels)
        self._queues = np.concatenate([net.ports.out_input[self._output_of_channel], blocked_queues])
        self._no_packet = allocate_records(self._state.pool, topology.channels)
        self._state.pool.packet["next"][self._no_packet] = NONE  # it has no flits
        added = np.column_stack([self._no_packet, self._no_packet])
        self._state = self._state._replace(delivery_queue=np.concatenate([self._state.delivery_queue, added]))
        switch = np.concatenate([net.ports.in_switch, np.zeros(topology.hosts, np.uint32), topology.dst])
        ports = net.ports._replace(in_switch=switch.astype(np.uint32))
        self._constants = self._constants._replace(net=net._replace(ports=ports))
        # while a change is applied: (channel, packet) of packets in flight, of those that wait, of those that re-route
        self._started = self._waiting = self._rerouted = np.zeros((2, 0), np.int64)
        self._rerouting = False  # whether it changes the routes

    @property
    def output_free_at(self) -> np.ndarray:
        free_at: np.ndarray = self._state.free_at
        return free_at

    def apply_change(self, change: NetworkChange, tick: int) -> None:
        self._take_packets(tick)
        super().apply_change(change, tick)
        self._return_packets(tick)

    def _take_packets(self, tick: int) -> None:
        """Take all packets out of the queues of channels; those that have not started no longer hold their output."""
        state, packet = self._state, self._state.pool.packet
        queue, packets = linked_lists(state.delivery_queue[self._queues, FRONT], packet["next"])
        queue, packets = np.stack([queue, packets])[:, ~np.isin(packets, self._no_packet)]
        blocked, channel = np.divmod(queue, self._topology.channels)
        outputs = self._output_of_channel[channel]
        start = self._start_of(packets, outputs)
        waits = (start >= tick) & ~self._is_read(packets)
        first = np.flatnonzero(waits & (blocked == 0))[::-1]  # of those that hold an output, the first one remains
        state.free_at[outputs[first]] = self._queue_free_at(packets[first], start[first])
        waits |= blocked == 1
        self._started, self._waiting = (np.stack([channel, packets])[:, mask] for mask in (~waits, waits))
        self._rerouted, self._rerouting = self._waiting[:, :0], False

    def _start_of(self, packets: Ints, outputs: Ints) -> Ints:
        """The ticks at which packets start, or have started, on outputs; int64 [packets] each."""
        const, packet = self._constants, self._state.pool.packet[packets]
        start: Ints = packet["arrives_at"] - const.transit_ticks[outputs]
        if const.output_ticks is not None:  # a packet goes at the speed at which it has started
            start += const.output_ticks[outputs] - packet["flit_ticks"]
        return start

    def _queue_free_at(self, packets: Ints, start: Ints) -> Ints:
        """The ticks at which outputs are free for the first packets in their queues; start: these start, as planned."""
        if self._constants.output_ticks is None:
            return start
        free_at: Ints = self._state.pool.packet["queue_free_at"][packets].astype(np.int64)
        return free_at

    def _is_read(self, packets: Ints) -> Bools:
        """Whether packets have been read, and wait until they starve no output; bool [packets]."""
        if self._constants.output_ticks is None:
            return np.zeros(len(packets), bool)
        is_read: Bools = self._state.pool.packet["output"][packets] != NONE
        return is_read

    def _held_ticks(self, packet: int, output: int) -> int:
        """Ticks for which a packet holds an output."""
        ticks = self._constants.output_ticks
        return int(self._state.pool.packet["flits"][packet]) * (1 if ticks is None else int(ticks[output]))

    def _fed_from(self, packets: Ints, outputs: Ints) -> Ints:
        """The ticks from which packets do not starve outputs; int64 [packets] each."""
        ticks, packet = self._constants.output_ticks, self._state.pool.packet[packets]
        if ticks is None:
            return np.zeros(len(packets), np.int64)
        fed_from: Ints = packet["tail_arrives_at"] - (packet["flits"].astype(np.int64) - 1) * ticks[outputs]
        return fed_from

    def change_speeds(self, channels: Ints, tick: int) -> None:
        self._constants.transit_ticks[self._output_of_channel[channels]] += self.set_output_ticks(channels)

    def _return_packets(self, tick: int) -> None:
        """Return all packets to queues; those that have not started hold their output again."""
        const, state, packet = self._constants, self._state, self._state.pool.packet
        state.free_at[self._output_of_channel[~self.channel_up]] = Tick.LIMIT
        outputs = self._output_of_channel[self._waiting[0]]
        fed_from = self._fed_from(self._waiting[1], outputs).tolist()
        for waiting, output, fed in zip(self._waiting[1].tolist(), outputs.tolist(), fed_from, strict=True):
            free_at = int(state.free_at[output])
            start = max(free_at, fed, tick)
            state.free_at[output] = start + self._held_ticks(waiting, output)
            packet["arrives_at"][waiting] = start + const.transit_ticks[output]
            if const.output_ticks is not None:
                packet["queue_free_at"][waiting], packet["flit_ticks"][waiting] = free_at, const.output_ticks[output]
        channels = np.arange(self._topology.channels)
        blocked = np.where(self.channel_up, 0, len(channels))[self._waiting[0]]
        queue = np.concatenate([len(channels) + channels, self._started[0], blocked + self._waiting[0]])
        packets = np.concatenate([self._no_packet, self._started[1], self._waiting[1]])
        order, ends = np.argsort(queue, kind="stable"), np.zeros((len(self._queues), 2), np.int64)
        link_lists(ends[:, FRONT], ends[:, BACK], packet["next"], queue[order], packets[order])
        state.delivery_queue[self._queues] = ends
        _join_outputs(const, state, self._rerouted[1], self._topology.src[self._rerouted[0]].astype(np.int64), tick)
        self._update_read_packets(tick)
        self._schedule_queues()

    def _update_read_packets(self, tick: int) -> None:
        """Let packets that have been read choose again if they must, and join queues when they starve no output."""
        const, state, packet = self._constants, self._state, self._state.pool.packet
        if const.output_ticks is None:
            return
        front = state.delivery_queue[: const.inputs, FRONT].astype(np.int64)
        inputs = np.flatnonzero(front != NONE)
        inputs = inputs[self._is_read(front[inputs])]
        read, switches = front[inputs], const.net.ports.in_switch[inputs].astype(np.int64)
        if self._rerouting:
            channel = const.net.ports.out_channel[packet["output"][read]].astype(np.int64)
            leaves = channel != NONE
            leaves[leaves] = self._leaves(channel[leaves], read[leaves])
            _choose_outputs(const, state, read[leaves], switches[leaves], tick)
        packet["arrives_at"][read] = np.maximum(self._fed_from(read, packet["output"][read].astype(np.int64)), tick)

    def _schedule_queues(self) -> None:
        """Schedule the delivery queues by their first packet, and nothing else."""
        state = self._state
        state.queue_wheel.words[:] = 0
        first = state.delivery_queue[: self._delivery_queues, FRONT]
        for queue in np.flatnonzero(first != NONE):
            schedule(state.queue_wheel, queue, int(state.pool.packet["arrives_at"][first[queue]]))

    def residents(self, tick: int) -> Residents:
        topology, (channel, packets) = self._topology, self._started
        arrives_at = self._state.pool.packet["arrives_at"][packets]
        on_channel = (arrives_at >= tick + self._constants.header_ticks) & ~self._is_read(packets)
        locations = np.where(on_channel, channel, topology.channels + topology.dst[channel])
        waits_at = topology.channels + topology.src[self._waiting[0]]
        return self.residents_of([packets, self._waiting[1]], [locations, waits_at])

    def remove_dropped(self, dropped: Bools, tick: int) -> None:
        self._started = self._started[:, ~dropped[self._started[1]]]
        self._waiting = self._waiting[:, ~dropped[self._waiting[1]]]

    def block(self, channels: Ints, tick: int) -> None:
        super().block(channels, tick)
        self._feed(channels, self._queues[self._topology.channels :])

    def unblock(self, channels: Ints, tick: int) -> None:
        super().unblock(channels, tick)
        self._feed(channels, self._queues)

    def _feed(self, channels: Ints, queues: Ints) -> None:
        """Let the outputs of channels feed other queues, by channel."""
        self._constants.net.ports.out_input[self._output_of_channel[channels]] = queues[channels]

    def requeue(self, tick: int) -> None:
        """Re-route the packets that wait for a failed channel, or for one that leads nowhere."""
        if self._constants.routes.form == RouteForm.VIA:
            self._state.pool.packet["route"] = MINIMAL_ROUTE
        self._rerouting = True
        leaves = self._leaves(*self._waiting)
        self._rerouted, self._waiting = self._waiting[:, leaves], self._waiting[:, ~leaves]

    def _leaves(self, channels: Ints, packets: Ints) -> Bools:
        """Whether packets that wait for channels must choose again, bool [packets]."""
        topology = self._topology
        dst_switch = topology.host_switch[self._state.pool.packet["dst_host"][packets]]
        stranded: Bools = are_stranded(self._constants.routes, topology.dst[channels], dst_switch)
        return ~self.channel_up[channels] | stranded
