# SPDX-License-Identifier: Apache-2.0
"""Links and switches that fail and return while flits are under way in wormhole switching.

All of it happens between two calls of the kernel, which is the same as without: an output that does not work is one
that has no free VCs. It is rare, and written in terms of whole arrays.
"""

from collections.abc import Iterator

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.rules.route import at_target, usable_ports
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.changing import Change
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.base import DROPPED_FLITS, DROPPED_PACKETS
from flitlab.sim.engines.compiled import wormhole
from flitlab.sim.engines.compiled.changes import DrainingRun
from flitlab.sim.engines.compiled.pool import free_records
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wheel import wake
from flitlab.sim.engines.compiled.wormhole.state import (
    EJECTED,
    EMPTY,
    HEAD,
    HEADERS,
    INJECTED,
    NO_CREDIT,
    NO_VC,
    ONE,
    OUTPUT_AT,
    PACKET_AT,
    VC_OF,
    U,
    only_ports,
)


class ChangingWormhole(DrainingRun):
    """A run of wormhole switching on a network that changes, compiled (see :class:`flitlab.sim.engines.base.Run`)."""

    def __init__(self, scenario: Scenario[Wormhole], load: float, seed: int, log: bool):
        super().__init__(wormhole, scenario, load, seed, log)
        self._vcs = int(self._constants.vcs)
        self._every_vc = ~U(0) >> U(64 - self._vcs)

    def _happen(self, failed: Bools, back: Bools, gone: Bools, tick: int) -> None:
        cut = self._none_cut()
        self._cut_on_links(failed, cut)
        self._cut_in_switches(gone, cut)
        self._cut(cut, tick)
        self._state.stock["free"][self._output[failed]] = 0
        self._state.stock["free"][self._output[back]] = self._every_vc
        self._ask_again()

    def _lose_waiting(self, tick: int) -> None:
        if self._works.all():
            return
        cut = self._none_cut()
        vcs = np.flatnonzero((self._blocked() & (EMPTY | NO_VC) == NO_VC) & ~self._asking())
        dead = self._of_outputs(~self._works)
        cut[self._front(vcs[self._asks_for(vcs, dead)])] = True
        self._cut(cut, tick)

    def _follow(self, change: Change, tick: int) -> None:
        super()._follow(change, tick)
        assert change.step.routes is not None
        self._constants = self._constants._replace(only_port=only_ports(change.step.routes))
        self._state.vc["choices"] = self._every_vc  # as where packets may take any

    def _none_cut(self) -> Bools:
        """Whether each record of a packet is that of one to be cut, bool [records]: none so far."""
        return np.zeros(len(self._state.pool.packet), bool)

    @property
    def _inputs(self) -> int:
        """Input VCs."""
        return int(self._constants.inputs)

    def _blocked(self) -> np.ndarray:
        """Why the front flit of each input VC cannot be sent, uint32 [input VCs]."""
        blocked: np.ndarray = self._state.vc["blocked"][: self._inputs]
        return blocked

    def _asking(self) -> Bools:
        """Whether a packet has come to the front of each input VC that has not asked for a VC, bool [input VCs]."""
        asking = np.zeros(self._inputs, bool)
        asking[self._state.asking[: self._state.asking[-1]] & U(0xFFFFFFFF)] = True
        return asking

    def _front(self, vcs: Ints) -> Ints:
        """The packet at the front of each of some input VCs, none of which is empty."""
        packets: Ints = self._state.vc["flit"][vcs].astype(np.int64) >> int(PACKET_AT)
        return packets

    def _asks_for(self, vcs: Ints, dead: Bools) -> Bools:
        """Whether the packet at the front of each of some input VCs asks for a dead output; dead: bool [outputs]."""
        const, packet = self._constants, self._state.pool.packet
        if const.rule != ADAPTIVE:
            of_dead: Bools = dead[self._state.vc["output"][vcs]]
            return of_dead
        asks = np.zeros(len(vcs), bool)
        for place, (vc, one) in enumerate(zip(vcs, self._front(vcs).tolist(), strict=True)):
            here, way, hop = int(const.switch[vc]), np.int64(packet["way"][one]), np.int64(packet["hop"][one])
            base, end = const.net.ports.out_base[here : here + 2]
            target = int(const.net.host_switch[packet["destination"][one]])
            if dead[base:end].any() and not at_target(const.routes, way, hop, here, target):
                ports = int(usable_ports(const.routes, way, hop, here, target))
                asks[place] = any(ports >> int(port) & 1 for port in np.flatnonzero(dead[base:end]))
        return asks

    def _entries(self, which: int) -> tuple[Ints, Ints, Ints]:
        """What is in a queue, in the order in which it comes out: (places in ``state.entries``, packets, VCs)."""
        batches = [np.arange(first, end) for first, end in self._due(which)[1].tolist()]
        place = np.concatenate([np.zeros(0, np.int64), *batches])
        entry = self._state.entries[place]
        packet = entry >> (U(32) + PACKET_AT)
        return place, packet.astype(np.int64), (entry & U(0xFFFFFFFF)).astype(np.int64)

    def _to_switches(self) -> range:
        """The queues of flits on their way to switches."""
        return range(int(INJECTED), int(self._constants.ejected))

    def _to_hosts(self) -> list[int]:
        """The queues of flits on their way to hosts."""
        return [int(EJECTED), *range(int(self._constants.ejected), int(self._constants.returned))]

    def _due(self, which: int) -> tuple[Ints, Ints]:
        """What comes out of a queue, by tick: (places in ``state.due``, [ticks, 2] those in ``state.entries``)."""
        ticks, queue = int(self._constants.ticks), self._state.queue[which]
        slot = (which << ticks) | (self._tick + np.arange(int(queue["delay"]))) & ((1 << ticks) - 1)
        due = self._state.due[slot]
        return slot, np.stack([due >> U(32), due & U(0xFFFFFFFF)], axis=1).astype(np.int64)

    def _keep(self, which: int, kept: Bools) -> None:
        """Keep some of the entries of a queue, each of which comes out when it would have; kept: bool [entries]."""
        state, queue = self._state, self._state.queue[which]
        (slot, due), (place, _, _) = self._due(which), self._entries(which)
        left = np.append(0, np.cumsum(kept))[np.append(0, np.cumsum(due[:, 1] - due[:, 0]))] + int(queue["first"])
        state.entries[left[0] : left[-1]] = state.entries[place[kept]]
        state.due[slot] = (left[:-1] << 32 | left[1:]).astype(U)
        queue["begun"] = queue["end"] = left[-1]

    def _buffered(self) -> Iterator[tuple[Ints, Ints]]:
        """The flits in buffers, the first of all, then the second and so on: (input VCs, places in ``state.flits``)."""
        front, landed = (self._state.vc[name][: self._inputs].astype(np.int64) for name in ("front", "landed"))
        first = (front & int(self._constants.ring)) * self._inputs + np.arange(self._inputs)
        self._state.flits[first] = self._state.vc["flit"][: self._inputs]
        for turn in range(int((landed - front).max(initial=0))):
            vcs = np.flatnonzero(front + turn < landed)
            yield vcs, ((front[vcs] + turn) & int(self._constants.ring)) * self._inputs + vcs

    def _owners(self) -> Ints:
        """The packet whose flits are at the front of each input VC, or are the next to come, NOBODY where none is."""
        state, vc = self._state, self._state.vc[: self._inputs]
        owner = np.full(self._inputs, NOBODY)
        for which in self._to_switches():
            _, packets, vcs = self._entries(which)
            owner[vcs[::-1]] = packets[::-1]  # of several that of the first stays
        held = np.flatnonzero(vc["landed"] != vc["front"])
        owner[held] = self._front(held)
        sending = state.sending[state.sending["packet"] != NOBODY]
        none = owner[sending["vc"]] == NOBODY
        owner[sending["vc"][none]] = sending["packet"][none]
        left = np.flatnonzero((self._blocked() & NO_VC == 0) & (owner == NOBODY))
        while len(left):  # flits are farther up, in buffers whose packet has the VC that leads here
            owner[left] = owner[vc["holder"][left]]
            left = left[owner[left] == NOBODY]
        return owner

    def _cut_on_links(self, failed: Bools, cut: Bools) -> None:
        """Mark the packets that have flits on channels that fail, bool [channels], or a VC there."""
        dead, behind = self._of_outputs(failed), self._inputs_behind(failed)
        owner, holds = self._owners(), self._blocked() & NO_VC == 0
        cut[owner[holds & dead[self._state.vc["output"][: self._inputs]]]] = True
        for which in self._to_switches():
            _, packets, vcs = self._entries(which)
            cut[packets[behind[vcs // self._vcs]]] = True

    def _cut_in_switches(self, gone: Bools, cut: Bools) -> None:
        """Mark the packets that have flits in switches that fail, bool [switches]."""
        for vcs, places in self._buffered():
            cut[self._state.flits[places[gone[self._constants.switch[vcs]]]] >> np.uint32(PACKET_AT)] = True

    def _cut(self, cut: Bools, tick: int) -> None:
        """Lose packets with all their flits, and free the VCs and the credits that they have; cut: bool [records]."""
        if not cut.any():
            return
        state, owner = self._state, self._owners()
        fresh: Bools = (owner != NOBODY) & cut[np.where(owner == NOBODY, 0, owner)]
        self._release(fresh)
        credited = self._drop(cut, tick)
        self._bring_forward(fresh, tick)
        sending = np.flatnonzero(state.sending["packet"] != NOBODY)
        halted = sending[cut[state.sending["packet"][sending]]]
        state.sending["packet"][halted] = NOBODY
        with_room = credited[: self._inputs].reshape(-1, self._vcs)[self._constants.net.ports.inject].any(axis=1)
        for host in {*halted.tolist(), *np.flatnonzero(with_room).tolist()}:
            wake(state.senders, host, tick)
        self._count_lost(np.flatnonzero(cut))
        self._ask_again()

    def _release(self, fresh: Bools) -> None:
        """Take the output VCs away from the packets at some input VCs; fresh: bool [input VCs]."""
        state, vc = self._state, self._state.vc[: self._inputs]
        holders = np.flatnonzero(fresh & (self._blocked() & NO_VC == 0))
        output, given = vc["output"][holders], vc["next_vc"][holders]
        state.vc["holder"][given] = NOBODY
        if self._constants.rule == ADAPTIVE:
            state.vc["asker"][given] = state.vc["carried"][given]
        np.bitwise_or.at(state.stock["free"], output, ONE << (given - state.stock["first"][output]).astype(U))
        state.stock["free"][self._output[~self._works]] = 0

    def _drop(self, cut: Bools, tick: int) -> Bools:
        """Take the flits of packets out of buffers and queues; the VCs for which credits are given back, bool [VCs]."""
        state, vc = self._state, self._state.vc[: self._inputs]
        back, kept = np.zeros(len(state.vc), np.int64), vc["front"].astype(np.int64)
        for vcs, places in self._buffered():
            flits = state.flits[places]
            gone = cut[flits >> np.uint32(PACKET_AT)]
            back[vcs[gone]] += 1
            vcs, flits = vcs[~gone], flits[~gone]
            state.flits[(kept[vcs] & int(self._constants.ring)) * self._inputs + vcs] = flits
            first = kept[vcs] == vc["front"][vcs]
            vc["flit"][vcs[first]] = flits[first]
            kept[vcs] += 1
        empty = kept == vc["front"]
        vc["landed"] = np.where(empty, 0, kept)
        vc["front"][empty] = 0
        for which in (*self._to_hosts(), *self._to_switches()):
            _, packets, vcs = self._entries(which)
            np.add.at(back, vcs[cut[packets]], 1)
            self._keep(which, ~cut[packets])
        state.vc["credits"] += back.astype(np.uint32)
        return back > 0

    def _bring_forward(self, fresh: Bools, tick: int) -> None:
        """Let the flits behind those that were cut come to the front, and list anew what can be sent.

        fresh: bool [input VCs], where the packet at the front was cut.
        """
        state, vc, blocked = self._state, self._state.vc[: self._inputs], self._blocked()
        empty = vc["landed"] == vc["front"]
        blocked[fresh] = np.where(empty[fresh], EMPTY | NO_VC, NO_VC)
        asking = np.flatnonzero(np.where(fresh, ~empty, self._asking()))
        heads = self._front(asking) << int(PACKET_AT) | int(HEAD)
        state.asking[: len(asking)], state.asking[-1] = heads << 32 | asking, len(asking)
        holds = np.flatnonzero(blocked & NO_VC == 0)
        short = state.vc["credits"][vc["next_vc"][holds]] == 0
        blocked[holds] = blocked[holds] & ~np.uint32(NO_CREDIT) | np.where(short, NO_CREDIT, 0).astype(np.uint32)
        ready = np.flatnonzero(blocked == 0)
        state.ready[: len(ready)] = vc["output"][ready].astype(U) << OUTPUT_AT | ready.astype(U)
        state.ready[-1] = len(ready)
        _, _, reading = self._entries(int(HEADERS))
        self._keep(int(HEADERS), ~fresh[reading])
        asking = state.contender[: state.contender[-1]]
        asking = asking[~fresh[(asking & VC_OF).astype(np.int64)]]
        state.contender[: len(asking)], state.contender[-1] = asking, len(asking)
        for line in np.flatnonzero(state.stock["waiting"] != NOBODY):
            self._leave_line(int(line), fresh)

    def _leave_line(self, line: int, fresh: Bools) -> None:
        """Take out of a line those whose packet was cut; fresh: bool [input VCs]."""
        waiting, following, stay = self._state.stock["waiting"], self._state.following, []
        vc = waiting[line]
        while vc != NOBODY:
            if not fresh[vc]:
                stay.append(vc)
            vc = following[vc]
        following[stay] = [*stay[1:], NOBODY][: len(stay)]
        waiting[line], self._state.stock["last"][line] = (stay[0], stay[-1]) if stay else (NOBODY, NOBODY)

    def _ask_again(self) -> None:
        """Have all who wait for a VC ask in the next tick whether they can have one."""
        self._state.to_retry[:] = _bitmap(self._state.stock["waiting"] != NOBODY, len(self._state.to_retry))

    def _count_lost(self, records: Ints) -> None:
        """Count packets as lost, and free their records."""
        pool, scalars = self._state.pool, self._state.tally.scalars
        flits = pool.packet["flits"][records].astype(np.int64)
        np.add.at(self._lost, pool.packet["source"][records], flits)
        scalars[DROPPED_PACKETS] += len(records)
        scalars[DROPPED_FLITS] += flits.sum()
        free_records(pool, records)


def _bitmap(members: Bools, words: int) -> np.ndarray:
    """The bitmap of so many words, uint64, of members, bool."""
    padded = np.zeros(64 * words, bool)
    padded[: len(members)] = members
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
