# SPDX-License-Identifier: Apache-2.0
"""Failures and returns of links and switches under deflection routing: a failed output is one that stays busy."""

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.tables import Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.compiled import deflection
from flitlab.sim.engines.compiled.calendar_queue import list_events, remove_events
from flitlab.sim.engines.compiled.deflection import set_ranked
from flitlab.sim.engines.compiled.timeline_run import TimelineRun, link_lists, linked_lists
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.faults import NO_LOCATION, Residents


@kernel
def _update_ranked(const, state):
    """Update the allowed ports of all eligible packets."""
    for switch in range(len(state.switch)):
        for i in range(np.int64(state.switch[switch].ranked)):
            set_ranked(const, state, switch, i, np.int64(state.ranked[switch, i].packet))


class DeflectionTimelineRun(TimelineRun):
    """A compiled run of deflection routing on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Deflection], load: float, seed: int, log: bool):
        super().__init__(deflection, scenario, load, seed, log)

    @property
    def output_free_at(self) -> np.ndarray:
        busy: np.ndarray = self._state.busy
        return busy

    def residents(self, tick: int) -> Residents:
        state, packet, channels = self._state, self._state.pool.packet, self._topology.channels
        arriving, _ = list_events(state.arriving)
        output = self._constants.net.ports.out_channel
        on_channel = packet["hop"][arriving] > 0
        locations = np.full(len(arriving), NO_LOCATION)
        locations[on_channel] = output[packet["output"][arriving[on_channel]]]
        reading_in, reading = linked_lists(state.switch["reading"], packet["next"])
        ranked_in, position = np.nonzero(np.arange(state.ranked.shape[1]) < state.switch["ranked"][:, None])
        ranked = state.ranked["packet"][ranked_in, position].astype(np.int64)
        return self.residents_of([arriving, reading, ranked], [locations, channels + reading_in, channels + ranked_in])

    def remove_dropped(self, dropped: Bools, tick: int) -> None:
        state, packet = self._state, self._state.pool.packet
        remove_events(state.arriving, dropped)
        reading_in, reading = linked_lists(state.switch["reading"], packet["next"])
        kept = ~dropped[reading]
        ends = state.switch["reading"], state.switch["last_reading"]
        link_lists(*ends, packet["next"], reading_in[kept], reading[kept])
        np.subtract.at(state.switch["resident"], reading_in[~kept], 1)
        for switch, count in enumerate(state.switch["ranked"].tolist()):
            ranked = state.ranked[switch, :count]
            ranked = ranked[~dropped[ranked["packet"]]]
            state.ranked[switch, : len(ranked)] = ranked
            state.switch[switch]["ranked"] = len(ranked)
            state.switch[switch]["resident"] -= count - len(ranked)

    def unblock(self, channels: Ints, tick: int) -> None:
        super().unblock(channels, tick)
        for channel in channels:
            self._schedule_switch(int(self._topology.src[channel]), max(tick, int(self._free_at[channel])))

    def install_routes(self, change: NetworkChange) -> Tables:
        tables = self._mode.tables_after(self._constants.routes, self._topology, change)
        self._constants = self._constants._replace(routes=tables.ports)
        return tables

    def requeue(self, tick: int) -> None:
        _update_ranked(self._constants, self._state)
        for switch in range(self._topology.switches):
            self._schedule_switch(switch, tick)

    def _schedule_switch(self, switch: int, tick: int) -> None:
        """Schedule the evaluation of a switch at a tick, or at the next slot boundary."""
        slot = self._constants.slot
        schedule(self._state.switch_wheel, switch, -(-tick // slot) * slot)
