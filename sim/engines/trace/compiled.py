# SPDX-License-Identifier: Apache-2.0
"""Follows a packet in the compiled engine: its record is read between ticks, and the kernels are unchanged."""

from collections.abc import Iterator
from types import ModuleType

import numpy as np

from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffered import Buffered
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled import deflection
from flitlab.sim.engines.compiled import vct as vct_kernel
from flitlab.sim.engines.compiled import wormhole as wormhole_kernel
from flitlab.sim.engines.compiled.calendar_queue import events_at
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.wormhole import layout as wormhole
from flitlab.sim.engines.trace.base import PacketState


class CompiledWatch(CompiledRun):
    """A run of the compiled engine that follows one packet (see :class:`~flitlab.sim.engines.trace.base.PacketWatch`).

    A switching mode provides its kernel and locates the packet. record: of the packet, -1 before it is sent. hop,
    place: at the last observation. due: tick at which its head arrives there.
    """

    kernel: ModuleType

    def __init__(self, scenario: Scenario[Buffered], load: float, seed: int, identity: int):
        super().__init__(self.kernel, scenario, load, seed, log=True)
        self.identity = identity
        self.sequence, self.source = divmod(identity, scenario.topology.hosts)
        self.header = scenario.switching.header
        self.record = -1
        self.hop = 0
        self.place = -1
        self.due = -1
        self._logged = 0

    def observe(self, now: int) -> PacketState | None:
        if self.record < 0:
            if self._state.host[self.source]["sequence"] <= self.sequence:
                return None
            self.record = self._find(now)
            self.place = self.first_place()
            self.due = self.arrival(now)
        arrives = self.due == now
        hop = int(self.field("hop"))
        if hop > self.hop:
            self.hop = hop
            self.place = self.next_place()
            self.due = self.arrival(now)
        here = self.due <= now
        sight = PacketState(
            hop, self.place, arrives, None, False, self._delivered(), deflections=int(self.field("deflections"))
        )
        return self.state_of(sight._replace(ejecting=sight.done), now, here)

    def _find(self, now: int) -> int:
        """The record of the packet, which was sent in this tick."""
        record = self._state.pool.packet
        fields = {"src_host": self.source, "sequence": self.sequence, "injected_at": now}
        fits = record["flits"] > 0
        for name, value in fields.items():
            fits &= record[name] == value
        return int(np.flatnonzero(fits)[0])

    def _delivered(self) -> bool:
        first, counters = self._logged, self._state.counters
        self._logged = int(counters.scalars[Scalar.DELIVERED_PACKETS])
        return bool((counters.log[first : self._logged, 0] == self.identity).any())

    def field(self, name: str) -> np.uint32:
        """The value of a field of the packet's record (:mod:`flitlab.sim.engines.compiled.records`)."""
        value: np.uint32 = self._state.pool.packet[self.record][name]
        return value

    def listed(self, first: int) -> Iterator[int]:
        """The records of a linked list of packets; first: NONE for an empty list."""
        while first != NONE:
            yield int(first)
            first = self._state.pool.packet[first]["next"]

    def slot(self, now: int) -> int:
        """The tick after ``now`` for which the arrival of the packet is scheduled."""
        due = self._state.arriving
        return next(tick for tick in range(now + 1, now + due.mask + 1) if self.record in events_at(due, tick))

    def first_place(self) -> int:
        """The place to which the host has just sent the packet."""
        return self.next_place()

    def next_place(self) -> int:
        """The place to which the packet has just been granted a channel."""
        raise NotImplementedError

    def arrival(self, now: int) -> int:
        """The tick at which the packet's head arrives at its next place, after tick ``now``."""
        raise NotImplementedError

    def state_of(self, sight: PacketState, now: int, here: bool) -> PacketState:
        """Complete a state, in which ``ejecting`` is set for a delivered packet; here: its head has arrived."""
        raise NotImplementedError


class VctWatch(CompiledWatch):
    """Follows a packet of virtual cut-through; its places are input VCs."""

    kernel = vct_kernel

    def next_place(self) -> int:
        return int(self.field("input_vc"))

    def arrival(self, now: int) -> int:
        return self.slot(now) - self.header

    def state_of(self, sight: PacketState, now: int, here: bool) -> PacketState:
        if sight.done or now < self.due + self.header:
            return sight
        front = self._state.vc[self.place]["head_packet"]
        if front == self.record:
            return sight._replace(eligible=int(self._state.vc[self.place]["eligible_at"]))
        return sight._replace(ejecting=self.record not in self.listed(front))


class WormholeWatch(CompiledWatch):
    """Follows a packet of wormhole switching; its places are input VCs.

    left: (input VC, the VC allocated there) of the switches that the head has left. since: tick from which it has been
    at the front.
    """

    kernel = wormhole_kernel

    def __init__(self, scenario: Scenario[Buffered], load: float, seed: int, identity: int):
        super().__init__(scenario, load, seed, identity)
        self.left: list[tuple[int, int]] = []
        self.since: int | None = None
        self.tails = 0
        self.ejecting = False

    def first_place(self) -> int:
        return int(self._state.injecting["vc"][self.source])

    def next_place(self) -> int:
        next_vc = self._vc(self.place, "next_vc")
        self.left.append((self.place, next_vc))
        self.since = None
        return next_vc

    def arrival(self, now: int) -> int:
        if self.hop == 0:
            return now + int(self._state.queue["delay"][self._state.injecting["queue"][self.source]])
        queue = self._state.output["queue"][self._vc(self.left[-1][0], "output")]
        return now + int(self._state.queue["delay"][queue])

    def state_of(self, sight: PacketState, now: int, here: bool) -> PacketState:
        vc = self.place
        if here and not self.ejecting and not self._holds_head():
            self.ejecting = True
            self.left.append((vc, self._vc(vc, "next_vc")))
        while self.tails < len(self.left) and not self._has(*self.left[self.tails]):
            self.tails += 1
        if here and not self.ejecting and self._is_head(self._vc(vc, "read_index")):
            came = self._came_to_front()
            self.since = now + came if self.since is None else self.since
            has_vc = not came and self._has(vc, self._vc(vc, "next_vc"))
            sight = sight._replace(eligible=self.since + self.header, allocated=has_vc)
        return sight._replace(ejecting=self.ejecting, tails=self.tails)

    def _vc(self, vc: int, field: str) -> int:
        return int(self._state.vc[field][vc])

    def _has(self, vc: int, next_vc: int) -> bool:
        """Whether the head packet of an input VC holds ``next_vc``."""
        return self._vc(next_vc, "holder") == vc

    def _came_to_front(self) -> bool:
        """Whether the packet came to the front as a tail left, so that it requests from the next tick on."""
        asking = self._state.new_heads
        return self.place in asking[: asking[-1]] & np.uint64(0xFFFFFFFF)

    def _is_head(self, number: int) -> bool:
        """Whether this packet's head is in a slot of the buffer."""
        c, flit = self._constants, self._vc(self.place, "front_flit")
        if number != self._vc(self.place, "read_index"):
            flit = int(self._state.flits[(number & int(c.buffer_mask)) * int(c.input_vcs) + self.place])
        return flit >> int(wormhole.PACKET_SHIFT) == self.record and bool(flit & int(wormhole.HEAD))

    def _holds_head(self) -> bool:
        """Whether the packet's head is among the flits that have arrived."""
        return any(map(self._is_head, range(self._vc(self.place, "read_index"), self._vc(self.place, "write_index"))))


class DeflectionWatch(CompiledWatch):
    """Follows a packet of deflection routing; its places are switches."""

    kernel = deflection

    def next_place(self) -> int:
        return int(self.field("switch"))

    def arrival(self, now: int) -> int:
        return self.slot(now)

    def state_of(self, sight: PacketState, now: int, here: bool) -> PacketState:
        if sight.done or not here:
            return sight
        switch = self._state.switch[self.place]
        ranked = self._state.ranked[self.place, : switch["ranked"]]["packet"]
        if self.record in ranked or self.record in self.listed(switch["reading"]):
            return sight._replace(eligible=int(self.field("eligible_at")))
        return sight._replace(ejecting=True)
