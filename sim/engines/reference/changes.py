# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets are under way."""

from collections import deque
from typing import Any

from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.rules.route import choose_way
from flitlab.models.rules.tables import PATHS, POLARIZED, VIA
from flitlab.models.rules.vc import last_resorts
from flitlab.models.switching.changing import Change
from flitlab.sim.engines.reference.clock import CHANGES, Alarm
from flitlab.sim.engines.reference.packet import Packet

NEVER_FREE = LONGEST_RUN
"""The tick from which an output is free that does not work."""


class Changes:
    """What happens to a network, and how its packets and hosts go on; a discipline says what becomes of its packets.

    network: a :class:`~flitlab.sim.engines.reference.network.Network`, which has this, its ``switches``, its ``hosts``,
    and as ``outputs`` those of channels between switches, each with its switch.
    """

    def __init__(self, network: Any, changes: tuple[Change, ...]):
        self.network, self.clock = network, network.clock
        self._pending = deque(changes)
        self._begun = -1
        self._free_at: dict[int, int] = {}  # of channels that do not work, when their outputs would be
        self._works = [True] * network.scenario.topology.channels
        self._switches = [True] * network.scenario.topology.switches
        for change in changes:
            Alarm(self.clock, change.step.tick, CHANGES, self._begin)

    def _begin(self, _: Any) -> None:
        """A tick begins in which something happens, or in which the network is to be looked at."""
        now = self.clock.now
        if self._begun == now:
            return
        self._begun = now
        if self._pending and self._pending[0].step.tick == now:
            change = self._pending.popleft()
            self._apply(change)
            if change.step.routes is not None:
                self._apply_routes(change)

    def _apply(self, change: Change) -> None:
        """Links and switches fail and return."""
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
        """A channel stops working: its output is never free."""
        output, _ = self.network.outputs[channel]
        self._free_at[channel], output.free_at = output.free_at, NEVER_FREE
        for packet in [one for one in self.network.sent() if one.on is output]:
            self._drop_on_link(packet)

    def _restore(self, channel: int) -> None:
        """A channel works again: its output is free when it would have been."""
        output, switch = self.network.outputs[channel]
        output.free_at = self._free_at.pop(channel)
        switch.schedule_at(max(self.clock.now, output.free_at))

    def _drop_on_link(self, packet: Packet) -> None:
        """A packet is lost whose head is on a link that fails."""
        self.network.drop(packet)

    def _drop_all(self, switch: Any) -> None:
        """All is lost that is in a switch."""
        raise NotImplementedError

    def _apply_routes(self, change: Change) -> None:
        """The routing learns of what is left."""
        raise NotImplementedError

    def _redraw_routes(self) -> None:
        """The packets that wait at hosts draw their ways among the routes that there are now."""
        network, hosts = self.network, self.network.scenario.topology.hosts
        for packet in (packet for host in network.hosts for packet in host.waiting):
            packet.route = 0
            if network.routes.form in (PATHS, VIA, POLARIZED):
                packet.route = choose_way(
                    network.routes, network.seed, packet.source, packet.destination, hosts, packet.sequence,
                    packet.origin, packet.target,
                )  # fmt: skip


class DrainingChanges(Changes):
    """What happens to a network in which packets wait for each other, whose hosts wait before routes change.

    They send by other routes once it is empty; a discipline says how what waits for an output that does not work is
    lost meanwhile.
    """

    def __init__(self, network: Any, changes: tuple[Change, ...]):
        super().__init__(network, changes)
        self._pending_routes: Change | None = None

    @property
    def draining(self) -> bool:
        """Whether hosts may not begin to send a packet."""
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

    def _apply_routes(self, change: Change) -> None:
        self._pending_routes = change

    def _drop_waiting(self) -> None:
        """Packets are lost that have asked for an output that does not work; those behind them come to the front."""
        raise NotImplementedError

    def _install_routes(self, change: Change) -> None:
        """Hosts send again, by other routes."""
        network = self.network
        assert change.step.routes is not None
        network.policy = change.policy
        network.routes = change.step.routes.tables(network.scenario.topology, change.policy)
        network.reserved_vcs = last_resorts(network.routes, change.policy)
        self._pending_routes = None
        self._redraw_routes()
        for host in network.hosts:
            host.schedule_at(self.clock.now)
