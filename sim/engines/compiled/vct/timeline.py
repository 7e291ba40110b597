# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail, slow down and return under virtual cut-through; a failed output stays busy."""

from collections.abc import Sequence

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.tables import Selection
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.sim.engines.compiled import vct
from flitlab.sim.engines.compiled.calendar_queue import list_events, remove_events
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, linked_lists
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.ugal import uses_congestion
from flitlab.sim.engines.compiled.vct.requests import (
    age_key_of_head_packet,
    allowed_ports_of_adaptive_packet,
    head_packet_is_fed_from,
    insert_requests_of_head_packet,
    remove_request_with_age_key,
)
from flitlab.sim.engines.faults import Residents


@inline
def _remove_requests_of_head_packet(const, state, vc, packet):
    """Withdraw the requests of the head packet of an input VC."""
    record = state.pool.packet[packet]
    age = age_key_of_head_packet(const, record, vc, np.int64(state.vc[vc].eligible_at))
    if const.rule != Selection.ADAPTIVE or record.output != NONE:
        remove_request_with_age_key(const, state, np.int64(record.output), age)
        return
    switch = np.int64(state.vc[vc].switch)
    base, ports = (
        np.int64(const.net.ports.out_base[switch]),
        allowed_ports_of_adaptive_packet(const, state, packet, switch),
    )
    while not is_empty(ports):
        remove_request_with_age_key(const, state, base + lowest(ports), age)
        ports = without_lowest(ports)


@kernel
def _remove_dropped_packets_from_buffers(const, state, dropped, tick):
    """Remove packets from the buffers; the packets behind a dropped head request outputs. dropped: bool [records]."""
    for vc in range(len(state.vc)):
        head = np.int64(state.vc[vc].head_packet)
        packet, first, last = head, NONE, NONE
        while packet != NONE:
            next_packet = np.int64(state.pool.packet[packet].next)
            if not dropped[packet]:
                if first == NONE:
                    first = packet
                else:
                    state.pool.packet[last].next = packet
                last = packet
            elif uses_congestion(const.rule):
                state.vc[vc].queued_flits -= np.uint32(state.pool.packet[packet].flits)
            packet = next_packet
        if last != NONE:
            state.pool.packet[last].next = NONE
        state.vc[vc].head_packet, state.vc[vc].last_packet = first, last
        if first != head:
            _remove_requests_of_head_packet(const, state, vc, head)
            state.vc[vc].predecessor_left_at = max(np.int64(state.vc[vc].predecessor_left_at), tick)
            if first != NONE:
                insert_requests_of_head_packet(const, state, vc, first, tick)


@kernel
def _revise_requests(const, state, tick):
    """Let head packets request anew whose eligibility changes with the speed of outputs; others keep their place."""
    for vc in range(len(state.vc)):
        packet = np.int64(state.vc[vc].head_packet)
        if packet != NONE:
            left_at = np.int64(state.vc[vc].predecessor_left_at)
            eligible_at = max(left_at, head_packet_is_fed_from(const.output_ticks, const, state, vc, packet))
            if eligible_at > tick or np.int64(state.vc[vc].eligible_at) >= tick:
                _remove_requests_of_head_packet(const, state, vc, packet)
                insert_requests_of_head_packet(const, state, vc, packet, max(tick, left_at))


class VctTimelineRun(TimelineRun):
    """A compiled run of virtual cut-through on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool):
        super().__init__(vct, scenario, load, seed, log)

    @property
    def output_free_at(self) -> np.ndarray:
        busy_until: np.ndarray = self._state.output["busy_until"]
        return busy_until

    def residents(self, tick: int) -> Residents:
        const, state, packet = self._constants, self._state, self._state.pool.packet
        vcs, buffered = linked_lists(state.vc["head_packet"], packet["next"])
        arriving, arrives_at = list_events(state.arriving)
        read_in = (arrives_at - tick) & state.arriving.mask
        entry = packet["input_vc"][arriving] // const.vcs
        locations = np.where(
            read_in >= const.header_ticks,
            self._channel_of_input[entry],
            self._topology.channels + const.net.ports.in_switch[entry],
        )
        return self.residents_of([buffered, arriving], [self._topology.channels + state.vc["switch"][vcs], locations])

    def remove_dropped(self, dropped: Bools, tick: int) -> None:
        const, state = self._constants, self._state
        packets = state.pool.packet[dropped]
        credits = state.vc["credit_index"][packets["input_vc"]]
        np.add.at(state.free_flits, credits, packets["flits"].astype(np.uint32))
        remove_events(state.arriving, dropped)
        _remove_dropped_packets_from_buffers(const, state, dropped, tick)
        for sender in np.unique(credits >> np.uint32(const.vc_bits)).tolist():
            host = sender - len(state.output)
            schedule(state.output_wheel if host < 0 else state.host_wheel, sender if host < 0 else host, tick)

    def block(self, channels: Ints, tick: int) -> None:
        super().block(channels, tick)
        self._schedule_switches(channels, tick)  # no head waits for a drawn channel that has failed

    def change_speeds(self, channels: Ints, tick: int) -> None:
        self._constants.delay[channels] += self.set_output_ticks(channels)
        _revise_requests(self._constants, self._state, tick)
        self._schedule_switches(channels, tick)

    def _schedule_switches(self, channels: Ints, tick: int) -> None:
        """Schedule all outputs of the switches that some channels leave."""
        base = self._constants.net.ports.out_base
        for switch in np.unique(self._topology.src[channels]):
            for output in range(base[switch], base[switch + 1]):
                schedule(self._state.output_wheel, output, tick)

    def unblock(self, channels: Ints, tick: int) -> None:
        super().unblock(channels, tick)
        for channel in channels:
            free_at = max(tick, int(self._free_at[channel]))
            schedule(self._state.output_wheel, self._output_of_channel[channel], free_at)

    def blocked_packets(self, tick: int) -> Sequence[int] | np.ndarray:
        vc = self._state.vc
        vcs = np.flatnonzero((vc["head_packet"] != NONE) & (vc["eligible_at"] < tick))
        heads = vc["head_packet"][vcs].astype(np.int64)
        outputs = self._state.pool.packet["output"][heads]
        blocked: Ints = heads[self.requests_failed_output(heads, vc["switch"][vcs], outputs)]
        return blocked
