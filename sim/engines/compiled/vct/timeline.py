# SPDX-License-Identifier: Apache-2.0
"""Failures, returns and rate changes of links and switches under virtual cut-through.

Events apply between two calls of the kernel, which has no code for them: a failed output is one that stays busy.
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
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT
from flitlab.sim.engines.compiled.timeline_run import DrainingTimelineRun, drop_packet
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.ugal import uses_congestion
from flitlab.sim.engines.compiled.vct.requests import allowed_ports, request_outputs, withdraw_request


@kernel
def _drop_on_links(const, state, dead_link, failed_switches, tick, dropped_flits):
    """Drop the packets whose head is on a failed link at ``tick``, or whose header a failed switch is reading.

    dead_link, failed_switches: bool [inputs], inputs behind failed links and of failed switches. dropped_flits: int64
    [hosts], by source.
    """
    for delay in range(state.output_wheel.mask + 1):
        block, count = take_bucket(state.arriving, tick + delay)
        while block != NONE:
            for i in range(count):
                packet = entry_in(state.arriving, block, i)
                vc = np.int64(state.pool.packet[packet].input_vc)
                if failed_switches[vc // const.vcs] or (dead_link[vc // const.vcs] and delay >= const.header_ticks):
                    state.free_flits[state.vc[vc].credit_index] += np.uint32(state.pool.packet[packet].flits)
                    drop_packet(state, packet, dropped_flits)
                else:
                    schedule_event(state.arriving, packet, tick + delay)
            block, count = release_block(state.arriving, block), BLOCK_ENTRIES


@kernel
def _drop_in_switches(const, state, failed_switches, outputs, dropped_flits):
    """Drop the packets in the buffers of failed switches.

    failed_switches: bool [inputs]. outputs: bool [outputs], those of failed switches. dropped_flits: int64 [hosts].
    """
    for vc in range(len(state.vc)):
        if failed_switches[vc // const.vcs]:
            packet = np.int64(state.vc[vc].head_packet)
            while packet != NONE:
                next_packet = np.int64(state.pool.packet[packet].next)
                state.free_flits[state.vc[vc].credit_index] += np.uint32(state.pool.packet[packet].flits)
                drop_packet(state, packet, dropped_flits)
                packet = next_packet
            state.vc[vc].head_packet = state.vc[vc].last_packet = NONE
            state.vc[vc].queued_flits = 0
    for output in range(len(outputs)):
        if outputs[output]:
            state.output[output].requests_waiting = 0


@inline
def _withdraw_from_dead(const, state, vc, packet, dead_output):
    """Withdraw the requests of a head packet if one is for a dead output, and tell whether one is.

    dead_output: bool [outputs].
    """
    record = state.pool.packet[packet]
    eligible = np.int64(state.vc[vc].eligible_at)
    age = age_key(np.int64(record.created_at) if const.oldest_first else eligible, vc)
    output = np.int64(record.output)
    if const.rule != ADAPTIVE or output != NONE:
        if dead_output[output]:
            withdraw_request(const, state, output, age)
        return dead_output[output]
    switch = np.int64(state.vc[vc].switch)
    base, is_dead = np.int64(const.net.ports.out_base[switch]), False
    ports = remaining = allowed_ports(const, state, packet, switch)
    while remaining:
        is_dead |= dead_output[base + lowest(remaining)]
        remaining &= remaining - np.uint64(1)
    while is_dead and ports:
        withdraw_request(const, state, base + lowest(ports), age)
        ports &= ports - np.uint64(1)
    return is_dead


@kernel
def _drop_blocked(const, state, dead_output, tick, dropped_flits):
    """Drop the head packets that have requested a dead output since before ``tick``; the next ones become heads.

    dead_output: bool [outputs]. dropped_flits: int64 [hosts], by source.
    """
    for vc in range(len(state.vc)):
        packet = np.int64(state.vc[vc].head_packet)
        if packet == NONE or np.int64(state.vc[vc].eligible_at) >= tick:
            continue
        if not _withdraw_from_dead(const, state, vc, packet, dead_output):
            continue
        flits, next_packet = np.int64(state.pool.packet[packet].flits), np.int64(state.pool.packet[packet].next)
        state.free_flits[state.vc[vc].credit_index] += np.uint32(flits)
        state.vc[vc].predecessor_left_at = tick
        state.vc[vc].head_packet = next_packet
        if uses_congestion(const.rule):
            state.vc[vc].queued_flits -= np.uint32(flits)
        drop_packet(state, packet, dropped_flits)
        if next_packet != NONE:
            request_outputs(const, state, vc, next_packet, tick)
        sender = np.int64(state.vc[vc].credit_index) >> const.vc_bits
        if sender < len(state.output):
            schedule(state.output_wheel, sender, tick)


class VctTimelineRun(DrainingTimelineRun):
    """A compiled run of virtual cut-through on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Vct], load: float, seed: int, log: bool):
        super().__init__(vct, scenario, load, seed, log)

    def _apply_event(self, failed: Bools, restored: Bools, failed_switches: Bools, tick: int) -> None:
        state = self._state
        dead_inputs = failed_switches[self._constants.net.ports.in_switch]
        _drop_on_links(self._constants, state, self._inputs_behind(failed), dead_inputs, tick, self._dropped_flits)
        outputs = np.repeat(failed_switches, np.diff(self._constants.net.ports.out_base).astype(np.int64))
        _drop_in_switches(self._constants, state, dead_inputs, outputs, self._dropped_flits)
        self._free_at[failed] = state.output["busy_until"][self._output_of_channel[failed]]
        state.output["busy_until"][self._output_of_channel[failed]] = TICK_LIMIT
        state.output["busy_until"][self._output_of_channel[restored]] = self._free_at[restored]
        for channel in np.flatnonzero(restored):
            schedule(state.output_wheel, self._output_of_channel[channel], max(tick, int(self._free_at[channel])))
        base = self._constants.net.ports.out_base
        for switch in np.unique(self._topology.src[failed]):  # no head waits for a drawn channel that has failed
            for output in range(base[switch], base[switch + 1]):
                schedule(state.output_wheel, output, tick)

    def _drop_blocked(self, tick: int) -> None:
        _drop_blocked(self._constants, self._state, self._as_outputs(~self._channel_up), tick, self._dropped_flits)
