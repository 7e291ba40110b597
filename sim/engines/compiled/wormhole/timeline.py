# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail, slow down and return under wormhole switching.

A failed output is one without free VCs. A channel that changes speed puts flits into the delay queue of its new delay.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.rules.classes import NO_LIMIT
from flitlab.models.rules.tables import Selection, Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.compiled import wormhole
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.timeline_run import TimelineRun
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.shared_queues import release_interrupted
from flitlab.sim.engines.compiled.wormhole.state import single_ports
from flitlab.sim.engines.faults import NO_LOCATION, Residents


class WormholeTimelineRun(TimelineRun):
    """A compiled run of wormhole switching on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Wormhole], load: float, seed: int, log: bool):
        super().__init__(wormhole, scenario, load, seed, log)
        self._vcs = int(self._constants.vcs)
        self._all_vcs = ~U(0) >> U(64 - self._vcs)

    def residents(self, tick: int) -> Residents:
        """Packets with flits on channels between switches, or with a VC there, and packets with flits in switches."""
        state, vc = self._state, self._state.vc[: self._inputs]
        packet_of_vc, holds = self._packet_of_vc(), self._blocked_reasons() & layout.NO_VC == 0
        channels = self._constants.net.ports.out_channel[vc["output"][holds]].astype(np.int64)
        packets, locations = [packet_of_vc[holds]], [np.where(channels == NONE, NO_LOCATION, channels)]
        for queue_index in self._switch_queues():
            _, in_flight, vcs = self._queue_entries(queue_index)
            packets.append(in_flight)
            locations.append(self._channel_of_input[vcs // self._vcs])
        for vcs, indices in self._buffered_flits():
            packets.append((state.flits[indices] >> np.uint32(layout.PACKET_SHIFT)).astype(np.int64))
            locations.append(self._topology.channels + self._constants.switch[vcs].astype(np.int64))
        return self.residents_of(packets, locations)

    def block(self, channels: Ints, tick: int) -> None:
        self._state.vc_set["free"][self._output_of_channel[channels]] = 0

    def unblock(self, channels: Ints, tick: int) -> None:
        self._state.vc_set["free"][self._output_of_channel[channels]] = self._all_vcs
        self._retry_all()

    def change_speeds(self, channels: Ints, tick: int) -> None:
        state, outputs = self._state, self._output_of_channel[channels]
        queue = state.output["queue"][outputs].astype(np.int64)
        delay = state.queue["delay"][queue] + self.set_output_ticks(channels)
        delays = state.queue["delay"][int(layout.NETWORK) : int(self._constants.switch_queues_end)]
        state.output["queue"][outputs] = int(layout.NETWORK) + (delays == delay[:, None]).argmax(axis=1)

    def blocked_packets(self, tick: int) -> Sequence[int] | np.ndarray:
        vcs = np.flatnonzero(
            (self._blocked_reasons() & (layout.EMPTY | layout.NO_VC) == layout.NO_VC) & ~self._has_new_head()
        )
        outputs = (
            np.full(len(vcs), NONE) if self._constants.rule == Selection.ADAPTIVE else self._state.vc["output"][vcs]
        )
        heads = self._head_packets(vcs)
        return heads[self.requests_failed_output(heads, self._constants.switch[vcs], outputs)]

    def install_routes(self, change: NetworkChange) -> Tables:
        assert change.routes is not None
        tables = super().install_routes(change)
        self._constants = self._constants._replace(single_port=single_ports(change.routes))
        self._state.vc["allowed_vcs"] = self._all_vcs  # as with policy ANY
        return tables

    @property
    def _inputs(self) -> int:
        """Number of input VCs."""
        return int(self._constants.input_vcs)

    def _blocked_reasons(self) -> np.ndarray:
        """Reasons why the front flit of each input VC cannot be sent, uint32 [input VCs]."""
        blocked: np.ndarray = self._state.vc["blocked"][: self._inputs]
        return blocked

    def _has_new_head(self) -> Bools:
        """Whether the packet at the front of each input VC has yet to request a VC, bool [input VCs]."""
        new_heads = np.zeros(self._inputs, bool)
        new_heads[self._state.new_heads[: self._state.new_heads[-1]] & U(0xFFFFFFFF)] = True
        return new_heads

    def _head_packets(self, vcs: Ints) -> Ints:
        """Packets at the front of some input VCs, none of which is empty."""
        packets: Ints = self._state.vc["front_flit"][vcs].astype(np.int64) >> int(layout.PACKET_SHIFT)
        return packets

    def _queue_entries(self, queue_index: int) -> tuple[Ints, Ints, Ints]:
        """Entries of a delay queue in their order: (indices in ``state.entries``, packets, VCs)."""
        batches = [np.arange(first, end) for first, end in self._due_ranges(queue_index)[1].tolist()]
        index = np.concatenate([np.zeros(0, np.int64), *batches])
        entry = self._state.entries[index]
        packet = entry >> (U(32) + layout.PACKET_SHIFT)
        return index, packet.astype(np.int64), (entry & U(0xFFFFFFFF)).astype(np.int64)

    def _switch_queues(self) -> range:
        """Delay queues of flits in flight to switches."""
        return range(int(layout.INJECTED), int(self._constants.switch_queues_end))

    def _host_queues(self) -> list[int]:
        """Delay queues of flits in flight to hosts."""
        return [
            int(layout.EJECTED),
            *range(int(self._constants.switch_queues_end), int(self._constants.host_queues_end)),
        ]

    def _in_flight_to_switches(self) -> tuple[Ints, Ints]:
        """Flits in flight to switches, the next to arrive first: (VCs, packets)."""
        ticks, packets, vcs = [], [], []
        for queue_index in self._switch_queues():
            due = self._due_ranges(queue_index)[1]
            _, queue_packets, queue_vcs = self._queue_entries(queue_index)
            ticks.append(np.repeat(np.arange(len(due)), due[:, 1] - due[:, 0]))
            packets.append(queue_packets)
            vcs.append(queue_vcs)
        order = np.argsort(np.concatenate(ticks), kind="stable")
        return np.concatenate(vcs)[order], np.concatenate(packets)[order]

    def _due_ranges(self, queue_index: int) -> tuple[Ints, Ints]:
        """Entries of a queue by tick: (indices in ``state.due``, [ticks, 2] indices in ``state.entries``)."""
        ticks, queue = int(self._constants.due_bits), self._state.queue[queue_index]
        slot = (queue_index << ticks) | (self._tick + np.arange(int(queue["delay"]))) & ((1 << ticks) - 1)
        due = self._state.due[slot]
        return slot, np.stack([due >> U(32), due & U(0xFFFFFFFF)], axis=1).astype(np.int64)

    def _retain(self, queue_index: int, retained: Bools) -> None:
        """Retain some entries of a queue, at their ticks; retained: bool [entries]."""
        state, queue = self._state, self._state.queue[queue_index]
        (slot, due), (index, _, _) = self._due_ranges(queue_index), self._queue_entries(queue_index)
        bounds = np.append(0, np.cumsum(retained))[np.append(0, np.cumsum(due[:, 1] - due[:, 0]))] + int(queue["first"])
        state.entries[bounds[0] : bounds[-1]] = state.entries[index[retained]]
        state.due[slot] = (bounds[:-1] << 32 | bounds[1:]).astype(U)
        queue["tick_begin"] = queue["end"] = bounds[-1]

    def _buffered_flits(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield the flits in buffers, first the front ones: (input VCs, indices in ``state.flits``)."""
        read_index, write_index = (
            self._state.vc[name][: self._inputs].astype(np.int64) for name in ("read_index", "write_index")
        )
        first = (read_index & int(self._constants.buffer_mask)) * self._inputs + np.arange(self._inputs)
        self._state.flits[first] = self._state.vc["front_flit"][: self._inputs]
        for depth in range(int((write_index - read_index).max(initial=0))):
            vcs = np.flatnonzero(read_index + depth < write_index)
            yield vcs, ((read_index[vcs] + depth) & int(self._constants.buffer_mask)) * self._inputs + vcs

    def _packet_of_vc(self) -> Ints:
        """Packet of the next flits of each input VC, in its buffer or in flight to it; NONE where there is none."""
        state, vc = self._state, self._state.vc[: self._inputs]
        packet_of_vc = np.full(self._inputs, NONE)
        vcs, packets = self._in_flight_to_switches()
        packet_of_vc[vcs[::-1]] = packets[::-1]  # of several flits, the first one's packet remains
        held = np.flatnonzero(vc["write_index"] != vc["read_index"])
        packet_of_vc[held] = self._head_packets(held)
        sending = state.injecting[state.injecting["packet"] != NONE]
        none = packet_of_vc[sending["vc"]] == NONE
        packet_of_vc[sending["vc"][none]] = sending["packet"][none]
        unknown = np.flatnonzero((self._blocked_reasons() & layout.NO_VC == 0) & (packet_of_vc == NONE))
        while len(unknown):  # flits are upstream, in the buffer of the VC's holder
            packet_of_vc[unknown] = packet_of_vc[vc["holder"][unknown]]
            unknown = unknown[packet_of_vc[unknown] == NONE]
        return packet_of_vc

    def remove_dropped(self, dropped: Bools, tick: int) -> None:
        """Remove packets with all their flits, and free their VCs and credits; dropped: bool [records]."""
        state, packet_of_vc = self._state, self._packet_of_vc()
        head_dropped: Bools = (packet_of_vc != NONE) & dropped[np.where(packet_of_vc == NONE, 0, packet_of_vc)]
        self._release_replies(head_dropped, packet_of_vc)
        self._release_vcs(head_dropped)
        has_new_credits = self._remove_flits(dropped, tick)
        self._advance_heads(head_dropped, tick)
        sending = np.flatnonzero(state.injecting["packet"] != NONE)
        interrupted = sending[dropped[state.injecting["packet"][sending]]]
        state.injecting["packet"][interrupted] = NONE
        if state.counters.channels is not None:
            wormhole.subtract_unsent(self._constants, state, interrupted, state.counters.channels)
        released = release_interrupted(state.shared_queues, interrupted)
        if state.pool.replies is not None:
            state.pool.replies.sending_until[interrupted] = tick
        can_inject = (
            has_new_credits[: self._inputs].reshape(-1, self._vcs)[self._constants.net.ports.inject].any(axis=1)
        )
        for host in {
            *(np.append(interrupted, released) % len(can_inject)).tolist(),
            *np.flatnonzero(can_inject).tolist(),
        }:
            schedule(state.host_wheel, host, tick)
        self._retry_all()

    def _release_replies(self, head_dropped: Bools, packet_of_vc: Ints) -> None:
        """Release the replies that hosts owe, of a limited number, to dropped packets: their heads have been ejected.

        Parameters
        ----------
        head_dropped: bool [input VCs], whose packet was dropped.
        packet_of_vc: int64 [input VCs], these packets.
        """
        replies, classes = self._state.pool.replies, self._constants.net.classes
        if replies is None:
            return
        vc, blocked = self._state.vc[: self._inputs], self._blocked_reasons()
        has_head = (blocked & layout.EMPTY == 0) & (vc["front_flit"] & layout.HEAD != 0)
        ejects = (blocked & layout.NO_VC == 0) & (vc["next_vc"] >= self._inputs)
        packets = self._state.pool.packet[packet_of_vc[head_dropped & ejects & ~has_head]]
        number = packets["sequence"].astype(np.int64) % classes.class_count
        limited = classes.reply_limit[number] != NO_LIMIT
        reply, hosts = classes.reply[number], classes.hosts // classes.subnets
        host = packets["dst_host"] % hosts + np.where(classes.subnets > 1, classes.subnet[reply], 0) * hosts
        np.subtract.at(replies.outstanding, (reply * classes.hosts + host)[limited], 1)

    def _release_vcs(self, head_dropped: Bools) -> None:
        """Release the output VCs of the packets at some input VCs; head_dropped: bool [input VCs]."""
        state, vc = self._state, self._state.vc[: self._inputs]
        holders = np.flatnonzero(head_dropped & (self._blocked_reasons() & layout.NO_VC == 0))
        output, granted = vc["output"][holders], vc["next_vc"][holders]
        state.vc["holder"][granted] = NONE
        if self._constants.rule == Selection.ADAPTIVE:
            state.vc["last_requester"][granted] = state.vc["flits_sent"][granted]
        np.bitwise_or.at(state.vc_set["free"], output, U(1) << (granted - state.vc_set["first"][output]).astype(U))
        state.vc_set["free"][self._output_of_channel[~self.channel_up]] = 0

    def _remove_flits(self, dropped: Bools, tick: int) -> Bools:
        """Remove the flits of packets from buffers and queues; returns the VCs that got credits back, bool [VCs]."""
        state, vc = self._state, self._state.vc[: self._inputs]
        returned_credits, next_index = np.zeros(len(state.vc), np.int64), vc["read_index"].astype(np.int64)
        for vcs, indices in self._buffered_flits():
            flits = state.flits[indices]
            is_dropped = dropped[flits >> np.uint32(layout.PACKET_SHIFT)]
            returned_credits[vcs[is_dropped]] += 1
            vcs, flits = vcs[~is_dropped], flits[~is_dropped]
            state.flits[(next_index[vcs] & int(self._constants.buffer_mask)) * self._inputs + vcs] = flits
            first = next_index[vcs] == vc["read_index"][vcs]
            vc["front_flit"][vcs[first]] = flits[first]
            next_index[vcs] += 1
        empty = next_index == vc["read_index"]
        vc["write_index"] = np.where(empty, 0, next_index)
        vc["read_index"][empty] = 0
        for queue_index in (*self._host_queues(), *self._switch_queues()):
            _, packets, vcs = self._queue_entries(queue_index)
            np.add.at(returned_credits, vcs[dropped[packets]], 1)
            self._retain(queue_index, ~dropped[packets])
        state.vc["credits"] += returned_credits.astype(np.uint32)
        return returned_credits > 0

    def _advance_heads(self, head_dropped: Bools, tick: int) -> None:
        """Advance the flits behind dropped packets to the front, and rebuild the ready list.

        head_dropped: bool [input VCs], whose packet at the front was dropped.
        """
        state, vc, blocked = self._state, self._state.vc[: self._inputs], self._blocked_reasons()
        empty = vc["write_index"] == vc["read_index"]
        blocked[head_dropped] = np.where(empty[head_dropped], layout.EMPTY | layout.NO_VC, layout.NO_VC)
        new_heads = np.flatnonzero(np.where(head_dropped, ~empty, self._has_new_head()))
        heads = self._head_packets(new_heads) << int(layout.PACKET_SHIFT) | int(layout.HEAD)
        state.new_heads[: len(new_heads)], state.new_heads[-1] = heads << 32 | new_heads, len(new_heads)
        holds = np.flatnonzero(blocked & layout.NO_VC == 0)
        lacks_credit = state.vc["credits"][vc["next_vc"][holds]] == 0
        blocked[holds] = blocked[holds] & ~np.uint32(layout.NO_CREDIT) | np.where(
            lacks_credit, layout.NO_CREDIT, 0
        ).astype(np.uint32)
        ready = np.flatnonzero(blocked == 0)
        state.ready[: len(ready)] = vc["output"][ready].astype(U) << layout.OUTPUT_SHIFT | ready.astype(U)
        state.ready[-1] = len(ready)
        _, _, reading = self._queue_entries(int(layout.HEADERS))
        self._retain(int(layout.HEADERS), ~head_dropped[reading])
        new_heads = state.contenders[: state.contenders[-1]]
        new_heads = new_heads[~head_dropped[(new_heads & layout.VC_MASK).astype(np.int64)]]
        state.contenders[: len(new_heads)], state.contenders[-1] = new_heads, len(new_heads)
        for wait_queue in np.flatnonzero(state.vc_set["first_waiting"] != NONE):
            self._leave_wait_queue(int(wait_queue), head_dropped)

    def _leave_wait_queue(self, wait_queue: int, head_dropped: Bools) -> None:
        """Remove the input VCs of dropped packets from a wait queue; head_dropped: bool [input VCs]."""
        waiting, following, remaining = self._state.vc_set["first_waiting"], self._state.next_waiting, []
        vc = waiting[wait_queue]
        while vc != NONE:
            if not head_dropped[vc]:
                remaining.append(vc)
            vc = following[vc]
        following[remaining] = [*remaining[1:], NONE][: len(remaining)]
        waiting[wait_queue], self._state.vc_set["last_waiting"][wait_queue] = (
            (remaining[0], remaining[-1]) if remaining else (NONE, NONE)
        )

    def _retry_all(self) -> None:
        """Have every packet that waits for a VC retried in the next tick."""
        self._state.to_retry[:] = _bitmap(self._state.vc_set["first_waiting"] != NONE, len(self._state.to_retry))


def _bitmap(members: Bools, words: int) -> np.ndarray:
    """Bitmap, uint64 [words], of members, bool."""
    padded = np.zeros(64 * words, bool)
    padded[: len(members)] = members
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
