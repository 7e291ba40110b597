# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while packets of virtual cut-through are under way."""

from collections import deque
from typing import Any

from flitlab.models.rules.route import choose_way
from flitlab.models.rules.tables import PATHS, POLARIZED, VIA
from flitlab.models.rules.vc import last_resorts
from flitlab.models.switching.vct import Change
from flitlab.sim.engines.reference.clock import CHANGES, Alarm
from flitlab.sim.engines.reference.packet import Packet

FOR_EVER = 1 << 60
"""The tick from which an output is free that does not work."""


class Changes:
    """What happens to a network of virtual cut-through, and how its packets and hosts go on.

    network: a :class:`~flitlab.sim.engines.reference.vct.VctNetwork`, which has this.
    """

    def __init__(self, network: Any, changes: tuple[Change, ...]):
        self.network, self.clock = network, network.clock
        self._coming = deque(changes)
        self._begun = -1
        self._learned: Change | None = None
        self._free_at: dict[int, int] = {}  # of channels that do not work, when their outputs would be
        self._switches = [True] * network.scenario.topology.switches
        for change in changes:
            Alarm(self.clock, change.step.tick, CHANGES, self._begin)

    @property
    def draining(self) -> bool:
        """Whether hosts may not send."""
        return self._learned is not None

    def _begin(self, _: Any) -> None:
        """A tick begins in which something happens, or in which the network may be empty."""
        now = self.clock.now
        if self._begun == now:
            return
        self._begun = now
        if self._coming and self._coming[0].step.tick == now:
            change = self._coming.popleft()
            self._happen(change)
            self._learned = change if change.step.routes is not None else self._learned
        if self._learned is None:
            return
        self._lose_waiting()
        if self.network.is_empty():
            self._follow(self._learned)
        else:
            Alarm(self.clock, now + 1, CHANGES, self._begin)

    def _happen(self, change: Change) -> None:
        """Links and switches fail and return."""
        network, now = self.network, self.clock.now
        for channel, works in enumerate(change.step.works.tolist()):
            output, switch = network.outputs[channel]
            if works == (channel not in self._free_at):
                continue
            if works:
                output.free_at = self._free_at.pop(channel)
                switch.wake(max(now, output.free_at))
            else:
                self._free_at[channel], output.free_at = output.free_at, FOR_EVER
                for packet in [one for one in network.sent() if one.on is output]:
                    room: Any = packet.moved.value
                    room.credits += packet.flits
                    network.lose(packet)
        for switch, works in zip(network.switches, change.step.switches.tolist(), strict=True):
            if self._switches[switch.index] and not works:
                for vc in switch.input_vcs:
                    while vc.queue:
                        self._lose_first(vc)
                switch.forget()
            self._switches[switch.index] = works

    def _lose_waiting(self) -> None:
        """Packets are lost that ask for an output that does not work; those behind them come to the front."""
        dead = {self.network.outputs[channel][0] for channel in self._free_at}
        for switch in self.network.switches:
            for vc in [vc for vc in switch.waiting if any(output in dead for output, _ in vc.queue[0].outlets)]:
                switch.waiting.remove(vc)
                self._lose_first(vc)
                vc.left = self.clock.now
                if vc.sender.waiting:
                    vc.sender.wake(self.clock.now)
                if vc.queue:
                    switch.expect(vc)

    def _lose_first(self, vc: Any) -> None:
        packet = vc.queue.popleft()
        vc.credits += packet.flits
        self.network.lose(packet)

    def _follow(self, change: Change) -> None:
        """Hosts send again, by other routes."""
        network = self.network
        assert change.step.routes is not None
        network.policy = change.policy
        network.routes = change.step.routes.tables(network.scenario.topology, change.policy)
        network.resorts = last_resorts(network.routes, change.policy)
        self._learned = None
        for host in network.hosts:
            for packet in host.waiting:
                self._lead_anew(packet)
            host.wake(self.clock.now)

    def _lead_anew(self, packet: Packet) -> None:
        """A packet that waits at its host draws its way among the routes that there are now."""
        network, hosts = self.network, self.network.scenario.topology.hosts
        packet.way = 0
        if network.routes.form in (PATHS, VIA, POLARIZED):
            packet.way = choose_way(
                network.routes, network.seed, packet.source, packet.destination, hosts, packet.sequence,
                packet.origin, packet.target,
            )  # fmt: skip
