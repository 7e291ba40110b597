# SPDX-License-Identifier: Apache-2.0
"""What a discipline is, and how a configuration asks for one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import ConfigDict

from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
from flitlab.models.registry import Parameters, SpecError
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import ANY, PROGRESSIVE, Routes, RoutingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.sizes import SizesSpec

Counted = Literal["packets", "flows", "programs"]
PACKETS, FLOWS, PROGRAMS = get_args(Counted)
"""What a run is measured by: packets that hosts draw, or flows of a transport, as the discipline counts them; or, where
hosts run one, a program."""

Certify = Callable[[Topology, Routes, int, bool], Certified]
"""Type of a function that certifies routes, as :func:`flitlab.models.routing.certificate.certify` does."""


@dataclass(frozen=True)
class SwitchingMode(ABC):
    """What a switch does with what arrives: the parameters and delays of one discipline, in ticks.

    A discipline of one's own is a frozen dataclass with ``mode`` and its fields, and may leave the rest as it is.
    mode: its name. counts: :data:`PACKETS`, :data:`FLOWS`, or None where only programs run. draws_paths: whether a flow
    draws whole paths at its source. programs: whether hosts can run them. changes: whether the network can change
    during a run. exact: its times are not rounded up to ticks.
    leaves: a send is done when all of its message is under way.
    """

    mode: ClassVar[str]
    counts: ClassVar[Counted | None] = PACKETS
    draws_paths: ClassVar[bool] = False
    programs: ClassVar[bool] = False
    supports_timeline: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    send_ends_at_injection: ClassVar[bool] = True

    @property
    def vc_policy(self) -> int:
        """The VC policy in force (``flitlab.models.routing.routes.ANY`` ...)."""
        return ANY

    @property
    def may_deadlock(self) -> bool:
        """Whether nothing certifies that packets cannot wait for each other, so that a deadlock is a result."""
        return False

    @property
    def long_lived(self) -> bool:
        """Whether flows never end; False for disciplines that count no flows."""
        return False

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The discipline under the VC policy of its routes, and why it cannot deadlock, '' where nothing can wait.

        Raises ``SpecError`` where it may deadlock, and was not allowed to.
        """
        return self, ""

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """What results depend on: plain values of the discipline, and hashes of what it is made of besides.

        source: how hosts create packets, for disciplines whose form depends on their lengths.
        """
        return {"mode": self.mode, **asdict(self)}, []

    def plain(self, flit_ns: float | None = None) -> dict[str, Any]:
        """The mapping ``switching:`` that gives this discipline, with every delay in ticks."""
        return {"mode": self.mode, **asdict(self)} | ({} if flit_ns is None else {"flit_ns": flit_ns})

    @property
    def delays(self) -> dict[str, int]:
        """Ticks of each delay by its name, for whoever reads of a run."""
        return {}

    @abstractmethod
    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks from the creation of a packet to its tail at its host, with nobody in its way.

        hops: channels between switches; their own delays are not counted.
        """

    def crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of a channel between switches, and of both channels to hosts, for what takes no time itself."""
        ends = self.zero_load_latency(topology, 0, 1)
        return float(self.zero_load_latency(topology, 1, 1) - ends), float(ends)

    def serialization_ticks(self, topology: Topology, length: Floats) -> Floats:
        """Ticks, float64, that a host's channel is busy with so many flits before the last of them is under way."""
        return length / topology.host_capacity - 1

    def flits_per_tick(self, topology: Topology) -> float:
        """The capacity of a channel that moves one flit a tick, or, where ticks are those of bytes, one byte."""
        return 1.0

    def tick_ns(self, topology: Topology, flit_ns: float | None) -> Fraction | None:
        """Nanoseconds of a tick, None where nobody knows. flit_ns: of a flit, None if unknown."""
        return None if flit_ns is None else Fraction(repr(float(flit_ns)))

    def weight(self, messages: Messages) -> int:
        """What a flit of a program's messages counts for: 1, or where ticks are those of bytes, as many as it has."""
        return 1

    def messages(
        self, topology: Topology, rendezvous: int, overhead_ns: float, buffered: bool, confirmed: bool = False
    ) -> Messages:
        """How messages of a program become packets, for disciplines that count flows and so say what a packet is.

        rendezvous: bytes above which a message waits for its receiver. overhead_ns: nanoseconds for which a send, or a
        receive, holds its processor. buffered, confirmed: as in :class:`~flitlab.models.application.messages.Messages`.
        """
        raise NotImplementedError

    def min_message_ticks(self, topology: Topology) -> int:
        """Ticks that a message without content, a request to send, takes at least."""
        return int(self.crossing(topology)[1])

    def channel_rate(self, topology: Topology) -> Floats | float:
        """What a channel between switches carries in a tick, at most, float64 [channels], or all the same."""
        return topology.capacity

    def longest_step(self, topology: Topology, flits: int) -> int:
        """Ticks that one step of a packet of so many flits takes at most, if it can go on."""
        return self.zero_load_latency(topology, 1, flits) + topology.longest_delay

    def deadlock_timeout(self, topology: Topology, flits: int) -> int:
        """Ticks for which nothing may move while packets of so many flits wait."""
        return 4 * self.longest_step(topology, flits)

    def stall_message(self, ticks: int) -> str:
        """What no packet has done for so long that none will any more."""
        return f"has moved for {ticks:,} ticks"

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks from a decision about a packet of so many flits to what follows from it."""
        return self.zero_load_latency(topology, 1, flits) + topology.longest_delay

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that says how much switches hold, and the packets of so many flits that all of them hold at most.

        Zero packets say that what a switch holds is not bounded by a key.
        """
        return "mode", 0

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """What is allowed but unlikely to be meant, each with a whole place of the configuration as its key.

        flits: of the first length of packets.
        """
        yield from ()

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError``, whose key is ``timeline``, where it cannot go on while this happens to its network.

        routes: of the network as it was built. Only disciplines that say ``supports_timeline`` are asked.
        """
        return None

    def check(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> None:
        """Raise ``SpecError``, whose key is a whole place of the configuration, where no run can begin.

        timeline: what happens to the network during the run; only disciplines that say ``supports_timeline`` are given one.
        """
        return None


@dataclass(frozen=True)
class SwitchingContext:
    """What stands around ``switching:``, for a discipline to be built in.

    flits: lengths of packets, ascending or not. routing: of which the routes are. path_draw, transport, sizes,
    together, seconds: of flows, see :class:`~flitlab.models.switching.datagram.Datagram`. window: seconds at which the
    measurement of flows begins and ends, None where hosts run a program.
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

    @property
    def degree(self) -> int:
        """The most channels that leave a switch."""
        return int(self.topology.out_degree.max(initial=1))


class SwitchingSpec(Parameters, ABC):
    """The keys of ``switching:`` in one mode; unknown keys and wrong types are refused, nothing is converted.

    beside: places outside of ``switching:`` that mean something in this mode, and in others only if these name them.
    usual_transport: kind of ``transport:`` of flows where none is given. progressive: whether packets may decide once
    more on their way (PROGRESSIVE).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    related_keys: ClassVar[tuple[str, ...]] = ()
    supports_progressive: ClassVar[bool] = False
    switching_mode: ClassVar[type[SwitchingMode]]
    default_transport: ClassVar[str] = "tcp"

    mode: str

    @property
    def tick_ns(self) -> float | None:
        """Nanoseconds of a tick, where the keys say so."""
        return None

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """What a discipline with these keys cannot do, each with a whole place of the configuration as its key.

        routes, flits: None where they are not known because of other mistakes.
        """
        again = routes is not None and routes.select == PROGRESSIVE and self.switching_mode.counts is not None
        if again and not self.supports_progressive:
            yield SpecError("par decides when a packet has been read, and serves mode vct only", key="routing.kind")

    @abstractmethod
    def build(self, setting: SwitchingContext) -> SwitchingMode:
        """The discipline in force, of keys that nothing was refused of; it may be another than ``mode`` says."""
