# SPDX-License-Identifier: Apache-2.0
"""The base class of switching modes, and of the keys by which a configuration selects one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field

from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields, Keys
from flitlab.models.registry import Parameters, SpecError
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes, RoutingSpec, Selection, VcPolicy
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.demand import TrafficClass
from flitlab.models.traffic.source import Source
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.sizes import SizesSpec

MAX_SUBNETS = 16
"""The most subnets of a network."""

Counted = Literal["packets", "flows", "programs"]
"""What a run is measured by: packets that hosts draw, or flows of a transport, as the mode counts them; or, where
hosts run one, a program."""

Certify = Callable[[Topology, Routes, int, bool], Certified]
"""Type of a function that certifies routes, as :func:`flitlab.models.routing.certificate.certify` does."""


@dataclass(frozen=True)
class SwitchingMode(ABC):
    """What a switch does with packets: parameters and delays of one switching mode, in ticks.

    A mode of your own is a frozen dataclass with ``mode`` and its fields; all methods but ``zero_load_latency`` have
    defaults.

    mode: its name. counts: packets, flows, or None where only programs run. draws_paths: whether flows
    draw whole paths at their source. programs: whether hosts can run programs. supports_timeline: whether the topology
    can change during a run. grants_flits: whether flits are granted, not packets. exact: its times are not rounded up
    to ticks. send_ends_at_injection: an eager send is done when all of its message is in flight. counts_channels:
    whether runs can count the traffic of every channel. has_classes: whether packets can be of several classes.
    limits_replies: whether the replies that a host owes can be limited. shares_source_queues: whether a class has one
    source queue in all subnets, and classes can share one. supports_multistage: whether hosts may inject
    at one switch and eject at another.
    """

    mode: ClassVar[str]
    counts: ClassVar[Counted | None] = "packets"
    draws_paths: ClassVar[bool] = False
    programs: ClassVar[bool] = False
    supports_timeline: ClassVar[bool] = False
    grants_flits: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    send_ends_at_injection: ClassVar[bool] = True
    counts_channels: ClassVar[bool] = False
    has_classes: ClassVar[bool] = False
    limits_replies: ClassVar[bool] = False
    shares_source_queues: ClassVar[bool] = False
    supports_multistage: ClassVar[bool] = False

    @property
    def vc_policy(self) -> int:
        """The VC policy in force (``flitlab.models.routing.routes.VcPolicy`` ...)."""
        return VcPolicy.ANY

    @property
    def may_deadlock(self) -> bool:
        """Whether no certificate excludes deadlock, so that a deadlock is a result."""
        return False

    @property
    def long_lived(self) -> bool:
        """Whether flows are long-lived; False for modes that count no flows."""
        return False

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode with the VC policy of its routes, and the certificate against deadlock as text.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        certify: the function that certifies routes.

        Returns
        -------
        The mode, and the text; '' where packets cannot wait for each other.

        Raises
        ------
        SpecError: the routes may deadlock, and ``allow_deadlock`` is not set.
        """
        return self, ""

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """What the content hash covers: plain values of the mode, and hashes of its further parts.

        source: how hosts create packets, for modes whose hash form depends on packet lengths.
        """
        return {"mode": self.mode, **asdict(self)}, []

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The mapping ``switching:`` that describes this mode, with every delay in ticks."""
        return {"mode": self.mode, **asdict(self)} | ({} if flit_ns is None else {"flit_ns": flit_ns})

    @property
    def delays(self) -> dict[str, int]:
        """Ticks of each delay by name, for reports."""
        return {}

    @abstractmethod
    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches; their own delays are not included.
        flits: length of the packet.
        """

    def crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of a channel between switches, and of both host channels, without any serialization time.

        Parameters
        ----------
        topology: the network.
        """
        ends = self.zero_load_latency(topology, 0, 1)
        return float(self.zero_load_latency(topology, 1, 1) - ends), float(ends)

    def flit_in_crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of a flit itself that :meth:`crossing` includes; of a byte where ticks are those of bytes.

        Parameters
        ----------
        topology: the network.

        Returns
        -------
        Those on a channel between switches, and on each channel of a host.
        """
        return 1.0, 1.0

    @property
    def head_delay(self) -> int:
        """Ticks of :meth:`crossing` for which only the head of a packet waits at a switch."""
        return 0

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks that a host's channel is busy before the last flit of a message is in flight.

        Parameters
        ----------
        topology: the network.
        length: float64, flits of the messages.

        Returns
        -------
        Ticks, float64, as ``length``.
        """
        return length / topology.host_capacity - 1

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of a channel that moves one flit per tick; where ticks are byte times, one byte.

        Parameters
        ----------
        topology: the network.
        """
        return 1.0

    def flits_per_load(self, topology: Topology) -> float:
        """Flits per tick of a host of rate 1 at load 1.

        Parameters
        ----------
        topology: the network.
        """
        return 1.0

    def slowness(self, topology: Topology, flits: int) -> tuple[Ints, int]:
        """Latency of channels that ``zero_load_latency`` of one flit does not include, at most.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.

        Returns
        -------
        Ticks of each channel between switches, int64 [channels], without its delay; and of both host channels.
        """
        return np.zeros(topology.channels, np.int64), flits - 1

    def tick_ns(self, topology: Topology, flit_ns: float | None) -> Fraction | None:
        """Nanoseconds of a tick, None if unknown. flit_ns: nanoseconds of a flit, None if unknown."""
        return None if flit_ns is None else Fraction(repr(float(flit_ns)))

    def weight(self, messages: Messages) -> int:
        """The counts of a flit of a program's messages: 1, or its bytes where ticks are byte times."""
        return 1

    def messages(
        self, topology: Topology, rendezvous: int, overhead_ns: float, buffered: bool, confirmed: bool = False
    ) -> Messages:
        """How messages of a program become packets, for modes that count flows and so define packets.

        Parameters
        ----------
        topology: the network.
        rendezvous: bytes above which a message waits for its receiver.
        overhead_ns: nanoseconds for which a send, or a receive, occupies its processor.
        buffered, confirmed: as in :class:`~flitlab.models.application.messages.Messages`.
        """
        raise NotImplementedError

    def min_message_ticks(self, topology: Topology) -> int:
        """The fewest ticks of a message without content, such as a request to send.

        Parameters
        ----------
        topology: the network.
        """
        return int(self.crossing(topology)[1])

    def channel_rate(self, topology: Topology) -> Floats | float:
        """The most that a channel between switches carries per tick: float64 [channels], or one number for all.

        Parameters
        ----------
        topology: the network.
        """
        return topology.capacity

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks that one step of a packet takes, if it is not blocked. flits: length of the packet.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return self.zero_load_latency(topology, 1, flits) + topology.longest_delay

    def deadlock_timeout(self, topology: Topology, flits: int) -> int:
        """Ticks without any progress after which waiting packets count as deadlocked. flits: length of packets.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return 4 * self.longest_step(topology, flits)

    def stall_message(self, ticks: int) -> str:
        """The end of the sentence "no packet ..." that reports a deadlock or stall after so many ticks."""
        return f"has moved for {ticks:,} ticks"

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks between a decision about a packet and its last consequence. flits: length of the packet.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return self.zero_load_latency(topology, 1, flits) + topology.longest_delay

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that sets the buffer size, and the most packets that all switches hold together.

        flits: length of packets. 0 packets: no key bounds what switches hold.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return "mode", 0

    def queue_sizes(self, instance: Instance, work: Source | Workload, load: float, seed: int) -> dict[str, Ints]:
        """What follows from the network where keys of queues are unset, to be shown; by default nothing.

        Parameters
        ----------
        instance, work: of the scenario.
        load, seed: with which a run can start.

        Returns
        -------
        Name of a quantity -> int64 [values], in bytes.
        """
        return {}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """Warnings about settings that are allowed but probably unintended.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        flits: the first packet length.

        Returns
        -------
        Errors to be shown as warnings, each with the full path of its key.
        """
        yield from ()

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` (key: timeline) if the mode cannot run through these events.

        routes: of the network as built. Only called for modes with ``supports_timeline``.

        Parameters
        ----------
        timeline: events of the network during the run; None: it does not change.
        routes: its routes.
        """
        return None

    def check(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> None:
        """Check that a run can start.

        Parameters
        ----------
        instance: topology, routes and traffic.
        work: traffic to draw packets from, or the program that hosts run.
        load: offered load.
        seed: of all draws.
        timeline: events of the network during the run; given only to modes with ``supports_timeline``.

        Raises
        ------
        SpecError: it cannot; the key is the full path of a configuration key.
        """
        return None


@dataclass(frozen=True)
class SwitchingContext:
    """Everything besides ``switching:`` that a switching mode is built from.

    flits: packet lengths, in any order. routing: the routing of ``routes``. path_draw, transport, sizes, together,
    seconds: of flows, see :class:`~flitlab.models.switching.datagram.Datagram`. window: seconds at which the
    measurement of flows begins and ends, None where hosts run a program. classes: of traffic; empty where all
    packets are of one class.
    """

    topology: Topology
    routes: Routes
    flits: tuple[int, ...] = (1,)
    routing: RoutingSpec | None = None
    transport: TransportSpec | None = None
    path_draw: int = 0
    sizes: SizesSpec | None = None
    together: bool = False
    seconds: float = 2.0
    window: tuple[float, float] | None = None
    classes: tuple[TrafficClass, ...] = ()

    @property
    def degree(self) -> int:
        """The largest number of channels that leave a switch."""
        return int(self.topology.out_degree.max(initial=1))

    @property
    def arrival_seconds(self) -> float:
        """Seconds for which flows arrive; those in Poisson processes until the run ends, with the window."""
        if self.together or self.sizes is None or self.window is None:
            return self.seconds
        return self.window[1]


class SwitchingSpec(Parameters, ABC):
    """The keys of ``switching:`` in one mode. Unknown keys and wrong types are rejected; nothing is converted.

    sends_flits: whether channels move whole flits, so that their capacities define the tick (``flit_times``).
    related_keys: keys outside of ``switching:`` that only modes which name them accept. default_transport: the default
    kind of ``transport:``. supports_progressive: whether packets may be re-routed at their second switch (PROGRESSIVE).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sends_flits: ClassVar[bool] = False
    related_keys: ClassVar[tuple[str, ...]] = ()
    supports_progressive: ClassVar[bool] = False
    switching_mode: ClassVar[type[SwitchingMode]]
    default_transport: ClassVar[str] = "tcp"

    mode: str
    link_gbps: Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)] | None = None
    """Rate of a channel of capacity 1, in any mode, in place of flit_ns or nic_mbps [Gbit/s]"""

    @property
    def tick_ns(self) -> float | None:
        """Nanoseconds of a tick, if the keys define it; with ``sends_flits``, of a flit on a channel of capacity 1."""
        return None

    def tick_in(self, topology: Topology) -> Fraction | None:
        """Nanoseconds of a tick in a network; None if the keys do not define it."""
        return None

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """What the mode cannot do with these keys.

        Parameters
        ----------
        topology: the network.
        routes: its routes, None if other errors prevent them.
        flits: packet lengths, None if other errors prevent them.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        if topology.is_multistage and not self.switching_mode.supports_multistage:
            problem = "is for networks whose hosts inject and eject at one switch; modes vct, wormhole, ideal and flow"
            yield SpecError(f"{self.switching_mode.mode} {problem} serve others, too", key="switching.mode")
        is_progressive = (
            routes is not None and routes.select == Selection.PROGRESSIVE and self.switching_mode.counts is not None
        )
        if is_progressive and not self.supports_progressive:
            yield SpecError("par decides again at the second switch and needs switching.mode: vct", key="routing.kind")

    @abstractmethod
    def build(self, setting: SwitchingContext) -> SwitchingMode:
        """The switching mode of these keys, which have no errors. Its ``mode`` may differ from the key."""
