# SPDX-License-Identifier: Apache-2.0
"""The common part of the modes with transports: packets of bytes, stored and forwarded by every channel."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields
from flitlab.models.registry import SpecError, warn
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.switching.hash_form import common_form
from flitlab.models.switching.switching_mode import Counted, SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.flows import Flows, arriving
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.queues import Links, exact, fastest_capacity, propagation_ticks, tick_of
from flitlab.models.transport.session import LATEST, TransportSession
from flitlab.models.transport.sizes import Sizes


def capacity_key(topology: Topology, key: str) -> str:
    """The key at fault for an error: for a capacity, the key that sets the slowest links."""
    slowed = "capacity_of" in topology.notes and topology.notes["capacity_of"]["factor"] < 1
    return "topology.capacity_of.factor" if slowed and key == "topology.capacity" else key


def transport_of_flows(flows_of_each: list[int], flows: int, seed: int | None) -> Ints:
    """The transport of each flow, int64 [flows]: in turn, or with a seed at random.

    Parameters
    ----------
    flows_of_each: flows of each transport per pair of hosts.
    flows: number of flows.
    seed: of the draws; None: flows of a pair follow each other.
    """
    each = np.repeat(np.arange(len(flows_of_each)), flows_of_each)
    if seed is None or len(flows_of_each) == 1:
        return each[np.arange(flows) % len(each)]
    return each[[below(draw(seed, Stream.TRANSPORT, flow, 0), len(each)) for flow in range(flows)]]


@dataclass(frozen=True)
class ByteSwitching(SwitchingMode):
    """A switching mode whose flit is a byte and whose tick is the time of a byte on the fastest channel.

    seconds: how long flows arrive, and the longest run.
    """

    key_paths: ClassVar[Mapping[str, str]]
    """Key of an error in a session -> its full path in the configuration."""

    counts: ClassVar[Counted | None] = "flows"
    programs: ClassVar[bool] = True
    supports_timeline: ClassVar[bool] = True
    send_ends_at_injection: ClassVar[bool] = False  # packets may be dropped before they leave

    transport: TransportSpec

    @property
    @abstractmethod
    def seconds(self) -> float: ...

    @property
    @abstractmethod
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""

    @property
    @abstractmethod
    def links(self) -> Links:
        """Rate and delay of links."""

    @abstractmethod
    def mean_bytes(self, sizes: Sizes) -> float:
        """Bytes that a flow sends, on average, with headers.

        Parameters
        ----------
        sizes: of flows.
        """

    @abstractmethod
    def session(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> TransportSession:
        """Flows or messages, transports and links of a run, for either engine. The instance must have routes.

        Parameters
        ----------
        instance: topology, routes and traffic.
        work: traffic to draw packets from, or the program that hosts run.
        load: offered load.
        seed: of all draws.
        timeline: events of the network during the run; None: it does not change.

        Returns
        -------
        The session.

        Raises
        ------
        SpecError: there is none; the key is one of ``key_paths``.
        """

    def check(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> None:
        """Check that there is a session for a run, and warn of what it makes unlikely to be meant.

        Parameters
        ----------
        instance, work, load, seed, timeline: as of :meth:`session`.

        Raises
        ------
        SpecError: there is none; the key is the full path of a configuration key.
        """
        try:
            session = self.session(instance, work, load, seed, timeline)
        except SpecError as error:
            key = error.key or ""
            path = capacity_key(instance.topology, self.key_paths.get(key, "switching"))
            error.key = f"transport.{key}" if key.partition(".")[0] == "of" else path
            raise
        for caution in session.cautions():
            warn(str(caution), caution.key)

    def _check_length(self, topology: Topology, most: int = LATEST) -> None:
        """Raise ``SpecError`` if a run takes more than ``most`` ticks."""
        tick = tick_of(topology, self.links)
        if exact(self.seconds) / tick > most:
            problem = f"at a tick of {float(tick * 10**9):.3g} ns a run may take at most {float(most * tick):.6g} s"
            raise SpecError(problem, key="seconds")

    def _arriving(
        self, instance: Instance, load: float, sizes: Sizes, payload: int, packet_bytes: int, mean: float, seed: int
    ) -> Flows:  # fmt: skip
        """Flows that arrive in Poisson processes, of packets of a payload that take ``packet_bytes`` on a link.

        mean: what a flow sends, on average, in full packets.
        """
        topology = instance.topology
        tick, nic = tick_of(topology, self.links), exact(self.links.nic_mbps) * exact(topology.host_capacity)
        packet_ticks = Fraction(8 * packet_bytes, 10**6) / nic / tick
        until = int(exact(self.seconds) / tick)
        return arriving(instance.traffic, load, sizes, payload, mean, packet_ticks, until, seed)

    def flits_per_load(self, topology: Topology) -> float:
        """The rate of a host at load 1: the capacity of its channel, the unit of ceilings."""
        return topology.host_capacity

    def tick_ns(self, topology: Topology, flit_ns: float | None) -> Fraction:
        """Nanoseconds of a byte on the fastest channel; flit_ns is not used."""
        return tick_of(topology, self.links) * 10**9

    def link_ticks(self, topology: Topology) -> int:
        """Propagation ticks of a link, at least 1.

        Parameters
        ----------
        topology: the network.
        """
        return propagation_ticks(topology, self.links)

    def _overhead_ticks(self, topology: Topology, overhead_ns: float) -> int:
        """Ticks for which a send, or a receive, occupies its processor."""
        return ceil(exact(overhead_ns) / self.tick_ns(topology, None))

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The common form without fields of its own, and the hash of all fields."""
        return common_form(self.mode, {}), [self.content_hash]

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks of a packet over channels of equal speed, each of which stores and forwards it.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches.
        flits: bytes of the packet.
        """
        return (hops + 2) * (self.link_ticks(topology) + flits)

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of the fastest channel, host channels included. It moves a byte per tick."""
        return fastest_capacity(topology)

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks that a host's channel is busy until the last byte of a message has left.

        Parameters
        ----------
        topology: the network.
        length: float64, bytes of the messages.

        Returns
        -------
        Ticks, float64, as ``length``.
        """
        return length * (self.flits_per_tick(topology) / topology.host_capacity)

    def min_message_ticks(self, topology: Topology) -> int:
        """The fewest ticks of any message: 3, a lower bound."""
        return 3

    def channel_rate(self, topology: Topology) -> Floats | float:
        """The most that a channel carries per tick: 1, as the ticks in which it sends are counted."""
        return 1.0

    def stall_message(self, ticks: int) -> str:
        """The end of the sentence "no packet ..." that reports a stall after so many ticks."""
        return f"has reached its receiver for {ticks:,} ticks"
