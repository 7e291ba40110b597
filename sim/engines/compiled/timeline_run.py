# SPDX-License-Identifier: Apache-2.0
"""Runs on dynamic topologies: failures, returns and rate changes of links and switches.

Events apply between two calls of a kernel, which has no code for them.
"""

from types import ModuleType

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inline
from flitlab.models.rules.vc import reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import Draining, DynamicTopology, PolicyChange
from flitlab.sim.engines.base import DROPPED_FLITS, DROPPED_PACKETS
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.pool import free_record
from flitlab.sim.engines.compiled.records import NEVER, NONE
from flitlab.sim.engines.compiled.timing_wheel import schedule


@inline
def drop_packet(state, packet, dropped_flits):
    """Drop a packet: count it, and free its record; dropped_flits: int64 [hosts], by source."""
    flits = np.int64(state.pool.packet[packet].flits)
    dropped_flits[state.pool.packet[packet].src_host] += flits
    state.counters.scalars[DROPPED_PACKETS] += 1
    state.counters.scalars[DROPPED_FLITS] += flits
    free_record(state.pool, packet)


class TimelineRun(CompiledRun):
    """A compiled run of packets on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`).

    Subclasses define what events do to packets. Arguments as of :class:`CompiledRun`.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario[DynamicTopology], load: float, seed: int, log: bool):
        super().__init__(kernel, scenario, load, seed, log)
        topology, ports = scenario.topology, self._constants.net.ports
        self._routes_fixed = False  # as routes change
        self._pending_changes = list(scenario.switching.policy_changes(scenario.timeline, scenario.routes))
        self._channel_up, self._switch_up = np.ones(topology.channels, bool), np.ones(topology.switches, bool)
        self._dropped_flits = np.zeros(topology.hosts, np.int64)
        network = np.flatnonzero(ports.out_channel != NONE)
        self._output_of_channel = network[np.argsort(ports.out_channel[network])]  # of each channel
        self._free_at = np.zeros(topology.channels, np.int64)  # of failed channels: when their output would be free

    def advance(self, until: int) -> None:
        while self._tick < until:
            self._begin_tick(self._tick)
            end = until if not self._pending_changes else min(until, self._pending_changes[0].step.tick)
            super().advance(min(end, self._next_inspection()))

    def _next_inspection(self) -> int:
        """Last tick by which the network is inspected again, with or without an event."""
        return 1 << 62

    def backlog(self) -> Ints:
        """Flits of each host created and neither delivered nor dropped, int64 [hosts]."""
        backlog: Ints = super().backlog() - self._dropped_flits
        return backlog

    def _begin_tick(self, tick: int) -> None:
        """Apply the event of a tick, if there is one."""
        if not self._pending_changes or self._pending_changes[0].step.tick != tick:
            return
        change = self._pending_changes.pop(0)
        failed, restored = self._channel_up & ~change.step.works, change.step.works & ~self._channel_up
        failed_switches = self._switch_up & ~change.step.switches
        self._channel_up, self._switch_up = change.step.works, change.step.switches
        self._apply_event(failed, restored, failed_switches, tick)
        if change.step.routes is not None:
            self._learn_routes(change, tick)

    def _apply_event(self, failed: Bools, restored: Bools, failed_switches: Bools, tick: int) -> None:
        """Let channels fail and return, and drop the packets of failed switches.

        Parameters
        ----------
        failed, restored: bool [channels].
        failed_switches: bool [switches].
        tick: of the event.
        """
        raise NotImplementedError

    def _learn_routes(self, change: PolicyChange, tick: int) -> None:
        """Give the routing the new topology."""
        raise NotImplementedError

    def _as_outputs(self, channels: Bools) -> Bools:
        """Values of channels, by the output that feeds each, bool [outputs]."""
        outputs = np.zeros(len(self._constants.net.ports.out_channel), bool)
        outputs[self._output_of_channel] = channels
        return outputs

    def _inputs_behind(self, channels: Bools) -> Bools:
        """Values of channels, by the input that each leads to, bool [inputs]."""
        ports = self._constants.net.ports
        inputs = np.zeros(len(ports.in_switch), bool)
        inputs[ports.out_input[self._output_of_channel]] = channels
        return inputs


class DrainingTimelineRun(TimelineRun):
    """A run with back-pressure, whose hosts wait until the network is empty before routes change.

    Subclasses define how packets that request a failed output are dropped meanwhile.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario[Draining], load: float, seed: int, log: bool):
        super().__init__(kernel, scenario, load, seed, log)
        self._pending_routes: PolicyChange | None = None  # in force as soon as the network is empty
        self._created_at = np.zeros(0, np.int64)  # creation ticks of the next packets of waiting hosts

    def _next_inspection(self) -> int:
        return super()._next_inspection() if self._pending_routes is None else self._tick + 1

    def _begin_tick(self, tick: int) -> None:
        super()._begin_tick(tick)
        if self._pending_routes is None:
            return
        self._drop_blocked(tick)
        if self._state.pool.free[-1] == len(self._state.pool.packet):
            self._adopt_routes(self._pending_routes, tick)

    def _learn_routes(self, change: PolicyChange, tick: int) -> None:
        if self._pending_routes is None:
            self._created_at = self._state.host["created_at"].copy()
            self._state.host["created_at"] = NEVER  # no host injects a packet
        self._pending_routes = change

    def _drop_blocked(self, tick: int) -> None:
        """Drop the head packets that have requested a failed output; the next packets become heads."""
        raise NotImplementedError

    def _adopt_routes(self, change: PolicyChange, tick: int) -> None:
        """Let hosts inject again, with new routes."""
        assert change.step.routes is not None
        routes = change.step.routes.tables(self._topology, change.policy)
        reserved = reserved_vcs(routes, change.policy)
        self._constants = self._constants._replace(routes=routes, policy=change.policy, reserved_vcs=reserved)
        self._pending_routes = None
        self._state.host["created_at"] = self._created_at
        for host in range(self._topology.hosts):
            schedule(self._state.host_wheel, host, tick)
