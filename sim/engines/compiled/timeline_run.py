# SPDX-License-Identifier: Apache-2.0
"""Runs on dynamic topologies: links and switches that fail, slow down and return.

Changes apply between two calls of a kernel, which has no code for them. They are rare, so that the modules of switching
modes work on whole arrays and lists.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.rules.bits import port_list
from flitlab.models.rules.route import at_destination, usable_ports
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import reserved_vcs
from flitlab.models.scenario import Scenario
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.timeline.network_changes import NetworkChange
from flitlab.sim.engines.base import ClassCounter, Scalar
from flitlab.sim.engines.classes import sent_while_draining
from flitlab.sim.engines.compiled.engine import CompiledRun
from flitlab.sim.engines.compiled.pool import free_records
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.replies import show_first_replies
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.faults import NO_LOCATION, Faults, Residents


def linked_lists(first: np.ndarray, following: np.ndarray) -> tuple[Ints, Ints]:
    """List the entries of linked lists, in their order: (number of the list, entry), int64 [entries] each.

    Parameters
    ----------
    first: integer [lists], the first entry of each, NONE if it is empty.
    following: integer [entries], the entry behind each, or NONE.
    """
    lists, entries, next_entry = list[int](), list[int](), following.tolist()
    for number, entry in enumerate(first.tolist()):
        while entry != NONE:
            lists.append(number)
            entries.append(entry)
            entry = next_entry[entry]
    return np.array(lists, np.int64), np.array(entries, np.int64)


def link_lists(first: np.ndarray, last: np.ndarray, following: np.ndarray, lists: Ints, entries: Ints) -> None:
    """Write linked lists with the entries that :func:`linked_lists` returned, or some of them.

    Parameters
    ----------
    first, last: integer [lists], the ends of each, to be written.
    following: integer [entries], the entry behind each, to be written for entries of the lists.
    lists, entries: int64, the number of the list of each entry, ascending, and the entry.
    """
    first[:] = last[:] = NONE
    following[entries] = NONE
    same_list = lists[1:] == lists[:-1]
    following[entries[:-1][same_list]] = entries[1:][same_list]
    first[lists[::-1]] = entries[::-1]
    last[lists] = entries


class TimelineRun(CompiledRun, Faults):
    """A compiled run of packets on a dynamic topology (see :class:`flitlab.sim.engines.base.Run`).

    Subclasses say where packets are and remove them. Arguments as of :class:`CompiledRun`.
    """

    def __init__(self, kernel: ModuleType, scenario: Scenario[DynamicTopology], load: float, seed: int, log: bool):
        CompiledRun.__init__(self, kernel, scenario, load, seed, log)
        Faults.__init__(self, scenario)
        topology, ports = scenario.topology, self._constants.net.ports
        self._mode = scenario.switching
        self._routes_fixed = False  # as routes change
        self._dropped_flits = np.zeros(topology.hosts, np.int64)
        network = np.flatnonzero(ports.out_channel != NONE)
        self._output_of_channel = network[np.argsort(ports.out_channel[network])]  # of each channel
        self._channel_of_input = np.full(len(ports.in_switch), NO_LOCATION)
        self._channel_of_input[ports.out_input[self._output_of_channel]] = np.arange(topology.channels)
        self._free_at = np.zeros(topology.channels, np.int64)  # of failed channels: when their output would be free
        self._stopped = np.repeat(~sent_while_draining(self._constants.net.classes), topology.hosts)  # of sources
        self._created_at = np.zeros(0, np.int64)  # creation ticks of the next packets of stopped sources

    def begin_tick(self, tick: int) -> None:
        super().begin_tick(tick)
        if self.draining:  # in every tick, as the record of a source shows a reply that has been created
            self._state.host["created_at"][self._stopped] = Tick.NEVER

    def advance(self, until: int) -> None:
        while self._tick < until:
            self.begin_tick(self._tick)
            super().advance(min(until, self.next_tick(self._tick)))

    def backlog(self) -> Ints:
        """Flits of each host created and neither delivered nor dropped, int64 [hosts]."""
        backlog: Ints = super().backlog() - self._dropped_flits
        return backlog

    def residents_of(self, packets: Sequence[Ints], locations: Sequence[Ints]) -> Residents:
        """The residents of arrays of packets and arrays of their locations."""
        packet, location = np.concatenate(packets), np.concatenate(locations)
        dst_host = self._state.pool.packet["dst_host"][packet]
        return Residents(packet, location, self._topology.host_switch[dst_host])

    def drop(self, packets: Sequence[int] | np.ndarray, tick: int) -> None:
        pool, scalars = self._state.pool, self._state.counters.scalars
        records = np.unique(packets)
        dropped = np.zeros(len(pool.packet), bool)
        dropped[records] = True
        self.remove_dropped(dropped, tick)
        flits = pool.packet["flits"][records].astype(np.int64)
        np.add.at(self._dropped_flits, pool.packet["src_host"][records], flits)
        scalars[Scalar.DROPPED_PACKETS] += len(records)
        scalars[Scalar.DROPPED_FLITS] += flits.sum()
        self._count_classes(pool.packet["sequence"][records].astype(np.int64), flits)
        free_records(pool, records)

    def _count_classes(self, sequences: Ints, flits: Ints) -> None:
        """Count dropped packets for their classes of traffic; sequences, flits: int64 [packets]."""
        counters = self._state.counters.classes
        if counters is not None:
            number = sequences % len(counters)
            np.add.at(counters[:, ClassCounter.DROPPED_PACKETS], number, 1)
            np.add.at(counters[:, ClassCounter.DROPPED_FLITS], number, flits)

    def remove_dropped(self, dropped: Bools, tick: int) -> None:
        """Remove packets from buffers, queues and channels, and free what they hold; dropped: bool [records]."""
        raise NotImplementedError

    @property
    def output_free_at(self) -> np.ndarray:
        """The tick at which each output is free, integer [outputs], to be written."""
        raise NotImplementedError

    def block(self, channels: Ints, tick: int) -> None:
        """Let the outputs of failed channels never be free."""
        outputs = self._output_of_channel[channels]
        self._free_at[channels] = self.output_free_at[outputs]
        self.output_free_at[outputs] = Tick.LIMIT

    def unblock(self, channels: Ints, tick: int) -> None:
        """Let the outputs of channels be free when they would have been."""
        self.output_free_at[self._output_of_channel[channels]] = self._free_at[channels]

    def set_output_ticks(self, channels: Ints) -> Ints:
        """Set the ticks of a flit on the outputs of channels that change speed.

        channels: int64 [changed]. Returns by how many ticks they change, int64 [changed].
        """
        ticks, outputs = self._constants.output_ticks, self._output_of_channel[channels]
        change: Ints = self.flit_ticks[channels] - ticks[outputs]
        ticks[outputs] += change
        return change

    def install_routes(self, change: NetworkChange) -> Tables:
        routes = self._mode.tables_after(self._constants.routes, self._topology, change)
        self._constants = self._constants._replace(routes=routes)
        if self.drains:
            self._constants = self._constants._replace(
                policy=change.policy, reserved_vcs=reserved_vcs(routes, change.policy)
            )
        return routes

    def is_empty(self) -> bool:
        return int(self._state.pool.free[-1]) == len(self._state.pool.packet)

    def stop_hosts(self) -> None:
        self._created_at = self._state.host["created_at"].copy()

    def requeue(self, tick: int) -> None:
        """Let stopped hosts inject again."""
        created_at, replies = self._state.host["created_at"], self._state.pool.replies
        created_at[self._stopped] = self._created_at[self._stopped]
        if replies is not None:
            show_first_replies(replies, self._constants.net.classes, self._state.host)
        for host in range(self._topology.hosts):
            schedule(self._state.host_wheel, host, tick)

    def requests_failed_output(self, packets: Ints, switch: np.ndarray, output: np.ndarray) -> Bools:
        """Whether each of some head packets requests the output of a failed channel.

        Parameters
        ----------
        packets: int64 [heads].
        switch: integer [heads], that each is in.
        output: integer [heads], that each requests; NONE if it may take several.
        """
        const, packet = self._constants, self._state.pool.packet
        failed = np.zeros(len(const.net.ports.out_channel) + 1, bool)
        failed[self._output_of_channel] = ~self.channel_up
        requests: Bools = failed[np.minimum(output, len(failed) - 1)]
        several = np.flatnonzero(output == NONE)
        several = several[np.isin(switch[several], self._topology.src[~self.channel_up])]
        for head, record, at in zip(several, packets[several], switch[several].tolist(), strict=True):
            route, hop = np.int64(packet["route"][record]), np.int64(packet["hop"][record])
            base, end = const.net.ports.out_base[at : at + 2]
            dst_switch = int(const.net.ejection_switch[packet["dst_host"][record]])
            if not at_destination(const.routes, route, hop, at, dst_switch):
                ports = port_list(usable_ports(const.routes, route, hop, at, dst_switch))
                requests[head] = failed[base:end][ports].any()
        return requests
