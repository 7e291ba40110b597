# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets are in flight."""

from collections import deque
from typing import Any

from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.rules.route import choose_route
from flitlab.models.rules.tables import PATHS, POLARIZED, VIA
from flitlab.models.rules.vc import reserved_vcs
from flitlab.models.switching.dynamic_topology import PolicyChange
from flitlab.sim.engines.reference.clock import CHANGES, Alarm
from flitlab.sim.engines.reference.packet import Packet

NEVER_FREE = LONGEST_RUN
"""The tick from which the output of a failed channel is free."""


class Changes:
    """The timeline of a network; each switching mode says what happens to its packets.

    network: a :class:`~flitlab.sim.engines.reference.network.Network`, which refers to this object and has
    ``switches``, ``hosts``, and as ``outputs`` those of channels between switches, each with its switch.
    """

    def __init__(self, network: Any, changes: tuple[PolicyChange, ...]):
        self.network, self.clock = network, network.clock
        self._pending = deque(changes)
        self._begun = -1
        self._free_at: dict[int, int] = {}  # of channels that do not work, when their outputs would be
        self._works = [True] * network.scenario.topology.channels
        self._switches = [True] * network.scenario.topology.switches
        for change in changes:
            Alarm(self.clock, change.step.tick, CHANGES, self._begin)

    def _begin(self, _: Any) -> None:
        """Start a tick with a change of the network, or one in which the network must be checked."""
        now = self.clock.now
        if self._begun == now:
            return
        self._begun = now
        if self._pending and self._pending[0].step.tick == now:
            change = self._pending.popleft()
            self._apply(change)
            if change.step.routes is not None:
                self._apply_routes(change)

    def _apply(self, change: PolicyChange) -> None:
        """Fail and restore links and switches."""
        before, self._works = self._works, change.step.works.tolist()
        for channel, (worked, works) in enumerate(zip(before, self._works, strict=True)):
            if works and not worked:
                self._restore(channel)
            elif worked and not works:
                self._fail(channel)
        for switch, works in zip(self.network.switches, change.step.switches.tolist(), strict=True):
            if self._switches[switch.index] and not works:
                self._drop_all(switch)
            self._switches[switch.index] = works

    def _fail(self, channel: int) -> None:
        """Fail a channel: its output is never free."""
        output, _ = self.network.outputs[channel]
        self._free_at[channel], output.free_at = output.free_at, NEVER_FREE
        for packet in [one for one in self.network.sent() if one.on is output]:
            self._drop_on_link(packet)

    def _restore(self, channel: int) -> None:
        """Restore a channel: its output is free when it would have been."""
        output, switch = self.network.outputs[channel]
        output.free_at = self._free_at.pop(channel)
        switch.schedule_at(max(self.clock.now, output.free_at))

    def _drop_on_link(self, packet: Packet) -> None:
        """Drop a packet whose head is on a link that fails."""
        self.network.drop(packet)

    def _drop_all(self, switch: Any) -> None:
        """Drop all packets of a switch."""
        raise NotImplementedError

    def _apply_routes(self, change: PolicyChange) -> None:
        """Apply the updated routes."""
        raise NotImplementedError

    def _redraw_routes(self) -> None:
        """Draw new routes for the packets that wait at hosts."""
        network, hosts = self.network, self.network.scenario.topology.hosts
        for packet in (packet for host in network.hosts for packet in host.waiting):
            packet.route = 0
            if network.routes.form in (PATHS, VIA, POLARIZED):
                packet.route = choose_route(
                    network.routes, network.seed, packet.source, packet.destination, hosts, packet.sequence,
                    packet.origin, packet.target,
                )  # fmt: skip


class DrainingChanges(Changes):
    """The timeline of a network whose packets wait for each other: hosts stop sending until it is empty, then routes
    change.

    Each switching mode says how packets that wait for a failed output are dropped meanwhile.
    """

    def __init__(self, network: Any, changes: tuple[PolicyChange, ...]):
        super().__init__(network, changes)
        self._pending_routes: PolicyChange | None = None

    @property
    def draining(self) -> bool:
        """Whether hosts may not start packets."""
        return self._pending_routes is not None

    def _begin(self, _: Any) -> None:
        now, previous = self.clock.now, self._begun
        super()._begin(_)
        if previous == now or self._pending_routes is None:
            return
        self._drop_waiting()
        if self.network.is_empty():
            self._install_routes(self._pending_routes)
        else:
            Alarm(self.clock, now + 1, CHANGES, self._begin)

    def _apply_routes(self, change: PolicyChange) -> None:
        self._pending_routes = change

    def _drop_waiting(self) -> None:
        """Drop head packets that request a failed output."""
        raise NotImplementedError

    def _install_routes(self, change: PolicyChange) -> None:
        """Install the updated routes and let hosts send again."""
        network = self.network
        assert change.step.routes is not None
        network.policy = change.policy
        network.routes = change.step.routes.tables(network.scenario.topology, change.policy)
        network.reserved_vcs = reserved_vcs(network.routes, change.policy)
        self._pending_routes = None
        self._redraw_routes()
        for host in network.hosts:
            host.schedule_at(self.clock.now)
