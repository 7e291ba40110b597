# SPDX-License-Identifier: Apache-2.0
"""Runs of packets whose links and switches fail and return, compiled: what they share.

All of it happens between two calls of a kernel, which is the same as without.
"""

from types import ModuleType

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.jit import inline
from flitlab.models.rules.vc import reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import Draining, DynamicTopology, PolicyChange
from flitlab.sim.engines.base import LOST_FLITS, LOST_PACKETS
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.pool import free_record
from flitlab.sim.engines.compiled.records import NEVER, NOBODY
from flitlab.sim.engines.compiled.wheel import wake


@inline
def lose(state, packet, lost):
    """Count a packet as lost, and free its record; lost: int64 [hosts], flits by source."""
    flits = np.int64(state.pool.packet[packet].flits)
    lost[state.pool.packet[packet].source] += flits
    state.tally.scalars[LOST_PACKETS] += 1
    state.tally.scalars[LOST_FLITS] += flits
    free_record(state.pool, packet)


class ChangingRun(CompiledRun):
    """A run of packets on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`).

    A discipline says what becomes of its packets. Arguments as of :class:`CompiledRun`.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario[DynamicTopology], load: float, seed: int, log: bool):
        super().__init__(kernel, scenario, load, seed, log)
        topology, ports = scenario.topology, self._constants.net.ports
        self._fixed = False  # as routes change
        self._changes = list(scenario.switching.policy_changes(scenario.timeline, scenario.routes))
        self._works, self._switches = np.ones(topology.channels, bool), np.ones(topology.switches, bool)
        self._lost = np.zeros(topology.hosts, np.int64)
        network = np.flatnonzero(ports.out_channel != NOBODY)
        self._output = network[np.argsort(ports.out_channel[network])]  # of each channel
        self._free_at = np.zeros(topology.channels, np.int64)  # of dead outputs, when they would be

    def advance(self, until: int) -> None:
        while self._tick < until:
            self._begin(self._tick)
            last = until if not self._changes else min(until, self._changes[0].step.tick)
            super().advance(min(last, self._latest()))

    def _latest(self) -> int:
        """The tick by which to look at the network again, though nothing may have happened to it."""
        return 1 << 62

    def backlog(self) -> Ints:
        """Flits that each host has created and that are neither delivered nor lost, int64 [hosts]."""
        backlog: Ints = super().backlog() - self._lost
        return backlog

    def _begin(self, tick: int) -> None:
        """Let happen what happens to the network as a tick begins."""
        if not self._changes or self._changes[0].step.tick != tick:
            return
        change = self._changes.pop(0)
        failed, back = self._works & ~change.step.works, change.step.works & ~self._works
        gone = self._switches & ~change.step.switches
        self._works, self._switches = change.step.works, change.step.switches
        self._happen(failed, back, gone, tick)
        if change.step.routes is not None:
            self._learn(change, tick)

    def _happen(self, failed: Bools, back: Bools, gone: Bools, tick: int) -> None:
        """Let channels fail and return, bool [channels] each, and lose what is in switches, bool [switches]."""
        raise NotImplementedError

    def _learn(self, change: PolicyChange, tick: int) -> None:
        """Note that the routing learns of what is left."""
        raise NotImplementedError

    def _of_outputs(self, channels: Bools) -> Bools:
        """What is so of channels, of the outputs that lead to them, bool [outputs]."""
        outputs = np.zeros(len(self._constants.net.ports.out_channel), bool)
        outputs[self._output] = channels
        return outputs

    def _inputs_behind(self, channels: Bools) -> Bools:
        """What is so of channels, of the inputs that they lead to, bool [inputs]."""
        ports = self._constants.net.ports
        inputs = np.zeros(len(ports.in_switch), bool)
        inputs[ports.out_input[self._output]] = channels
        return inputs


class DrainingRun(ChangingRun):
    """A run of packets that wait for each other, whose hosts wait for the network to be empty before routes change.

    A discipline says how what waits for an output that does not work is lost meanwhile.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario[Draining], load: float, seed: int, log: bool):
        super().__init__(kernel, scenario, load, seed, log)
        self._learned: PolicyChange | None = None  # but not in force before the network is empty
        self._born = np.zeros(0, np.int64)  # of hosts that wait for that, when their next packets were created

    def _latest(self) -> int:
        return super()._latest() if self._learned is None else self._tick + 1

    def _begin(self, tick: int) -> None:
        super()._begin(tick)
        if self._learned is None:
            return
        self._lose_waiting(tick)
        if self._state.pool.free[-1] == len(self._state.pool.packet):
            self._follow(self._learned, tick)

    def _learn(self, change: PolicyChange, tick: int) -> None:
        if self._learned is None:
            self._born = self._state.host["born"].copy()
            self._state.host["born"] = NEVER  # so that nobody begins to send a packet
        self._learned = change

    def _lose_waiting(self, tick: int) -> None:
        """Lose the packets that have asked for an output that does not work; those behind them come to the front."""
        raise NotImplementedError

    def _follow(self, change: PolicyChange, tick: int) -> None:
        """Let hosts send again, by other routes."""
        assert change.step.routes is not None
        routes = change.step.routes.tables(self._topology, change.policy)
        resorts = reserved_vcs(routes, change.policy)
        self._constants = self._constants._replace(routes=routes, policy=change.policy, resorts=resorts)
        self._learned = None
        self._state.host["born"] = self._born
        for host in range(self._topology.hosts):
            wake(self._state.senders, host, tick)
