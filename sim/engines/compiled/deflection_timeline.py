# SPDX-License-Identifier: Apache-2.0
"""Failures, returns and rate changes of links and switches under deflection routing.

Events apply between two calls of the kernel, which has no code for them: a failed output is one that stays busy.
"""

import numpy as np

from flitlab.models.arrays import Bools
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.port_sets import has_no_port, pack_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.sim.engines.compiled import deflection
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.deflection import set_ranked
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, drop_packet
from flitlab.sim.engines.compiled.timing_wheel import schedule


@inline
def _is_stranded(const, state, packet, switch):
    """Tell whether no next hop leads a packet from a switch to its destination."""
    dst_switch = np.int64(const.net.host_switch[state.pool.packet[packet].dst_host])
    return has_no_port(const.routes, dst_switch, switch)


@kernel
def _drop_on_links(const, state, dead_output, stranded, dropped_flits):
    """Drop the packets whose head is on a dead link; if ``stranded``, also those without a next hop.

    dead_output: bool [outputs]. dropped_flits: int64 [hosts], by source.
    """
    for tick in range(state.arriving.mask + 1):
        block, count = take_bucket(state.arriving, tick)
        while block != NONE:
            for i in range(count):
                packet = entry_in(state.arriving, block, i)
                next_switch = np.int64(state.pool.packet[packet].switch)
                on_link = state.pool.packet[packet].hop > 0
                if on_link and (
                    dead_output[state.pool.packet[packet].output]
                    or (stranded and _is_stranded(const, state, packet, next_switch))
                ):
                    drop_packet(state, packet, dropped_flits)
                else:
                    schedule_event(state.arriving, packet, tick)
            block, count = release_block(state.arriving, block), BLOCK_ENTRIES


@kernel
def _drop_in_switches(const, state, failed_switches, stranded, dropped_flits):
    """Drop the packets in failed switches, or, if ``stranded``, those without a next hop.

    failed_switches: bool [switches]. dropped_flits: int64 [hosts], by source.
    """
    for switch in range(len(failed_switches)):
        packet, remaining = np.int64(state.switch[switch].reading), 0
        state.switch[switch].reading = state.switch[switch].last_reading = NONE
        while packet != NONE:
            next_packet = np.int64(state.pool.packet[packet].next)
            state.pool.packet[packet].next = NONE
            if failed_switches[switch] or (stranded and _is_stranded(const, state, packet, switch)):
                drop_packet(state, packet, dropped_flits)
                state.switch[switch].resident -= 1
            elif state.switch[switch].reading == NONE:
                state.switch[switch].reading = state.switch[switch].last_reading = packet
            else:
                state.pool.packet[state.switch[switch].last_reading].next = packet
                state.switch[switch].last_reading = packet
            packet = next_packet
        for i in range(np.int64(state.switch[switch].ranked)):
            packet = np.int64(state.ranked[switch, i].packet)
            if failed_switches[switch] or (stranded and _is_stranded(const, state, packet, switch)):
                drop_packet(state, packet, dropped_flits)
                state.switch[switch].resident -= 1
            else:
                set_ranked(const, state, switch, remaining, packet)  # with the ports of new routes
                remaining += 1
        state.switch[switch].ranked = remaining


class DeflectionTimelineRun(TimelineRun):
    """A compiled run of deflection routing on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool):
        super().__init__(deflection, scenario, load, seed, log)

    def _apply_event(self, failed: Bools, restored: Bools, failed_switches: Bools, tick: int) -> None:
        busy = self._state.busy
        self._drop_stranded(failed, failed_switches, False)
        self._free_at[failed] = busy[self._output_of_channel[failed]]
        busy[self._output_of_channel[failed]] = TICK_LIMIT
        busy[self._output_of_channel[restored]] = self._free_at[restored]
        for channel in np.flatnonzero(restored):
            self._schedule_switch(int(self._topology.src[channel]), max(tick, int(self._free_at[channel])))

    def _learn_routes(self, change: PolicyChange, tick: int) -> None:
        assert change.step.routes is not None
        self._constants = self._constants._replace(routes=pack_ports(change.step.routes.ports))
        self._drop_stranded(np.zeros(self._topology.channels, bool), np.zeros(self._topology.switches, bool), True)
        for switch in range(self._topology.switches):
            self._schedule_switch(switch, tick)

    def _drop_stranded(self, failed: Bools, failed_switches: Bools, stranded: bool) -> None:
        """Drop the packets on failed channels, in failed switches, and, if ``stranded``, without a next hop."""
        dead_output = np.zeros(len(self._state.busy), bool)
        dead_output[self._output_of_channel[failed]] = True
        _drop_on_links(self._constants, self._state, dead_output, stranded, self._dropped_flits)
        _drop_in_switches(self._constants, self._state, failed_switches, stranded, self._dropped_flits)

    def _schedule_switch(self, switch: int, tick: int) -> None:
        """Schedule the evaluation of a switch at a tick, or at the next slot boundary."""
        slot = self._constants.slot
        schedule(self._state.switch_wheel, switch, -(-tick // slot) * slot)
