# SPDX-License-Identifier: Apache-2.0
"""Datagrams: packets of a transport in queues that drop packets when full."""

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, make, register, whole
from flitlab.models.routing.routes import RoutingSpec
from flitlab.models.switching.byte_switching import ByteSwitching, transport_of_flows
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import Amount
from flitlab.models.traffic.source import Source
from flitlab.models.transport.failures import LinkFailures, with_failures, with_timeline
from flitlab.models.transport.flows import Flows, long_lived, together
from flitlab.models.transport.messages import connections
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.queues import Queues, tick_of
from flitlab.models.transport.session import LATEST, Session, make_session
from flitlab.models.transport.sizes import Sizes, SizesSpec
from flitlab.models.transport.times import default_start_ms, times_of_keys

MOST_PACKETS = 1 << 32
"""Packets of a subflow, which have 32-bit numbers. Each takes a tick per byte."""

KEY_PATHS = {
    **{key: f"switching.{key}" for key in ("queue_packets", "packet_bytes")},
    **{key: f"transport.{key}" for key in ("subflows", "min_rto_ms", "ack_path", "ack_bytes", "flows")},
    **{key: f"switching.link_failures.{key}" for key in ("at_ms", "reroute_ms")},
    **{key: key for key in ("traffic", "loads", "application", "transport", "timeline", "timeline.factor")},
    **{key: f"traffic.{key}" for key in ("sizes.bytes", "sizes.path", "sizes.mean_bytes")},
    "failures.links": "switching.link_failures.links", "failures": "switching.link_failures",
    "capacity": "topology.capacity", "host_capacity": "topology.host_capacity", "link_us": "switching.link_us",
    "seconds": "measure.seconds", "path_draw": "routing.path_draw", "priority_class": "transport.priority_class",
}  # fmt: skip
"""Key of an error in a session -> its full path in the configuration."""


@dataclass(frozen=True)
class Datagram(ByteSwitching):
    """Packets of a transport in queues that drop packets when full.

    A tick is the time of a byte on the fastest channel. sizes: None for long-lived flows. poisson: finite flows arrive
    in Poisson processes at the load; else every pair of the pattern has one from tick 0. seconds: how long flows
    arrive. routing: computes the routes after ``failures``.
    """

    mode: ClassVar[str] = "datagram"
    key_paths = KEY_PATHS
    draws_paths: ClassVar[bool] = True

    queues: Queues
    routing: RoutingSpec
    path_draw: int = PathDraw.DISTINCT
    sizes: SizesSpec | None = None
    poisson: bool = True
    seconds: float = 2.0
    failures: LinkFailures | None = None

    @property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        parts = [self.transport.model_dump(mode="json"), self.routing.model_dump(mode="json"), asdict(self.queues)]
        sizes = self.sizes and [self.sizes.model_dump(mode="json"), *self.sizes.build().table()]
        failures = self.failures and asdict(self.failures)
        return content_hash(*parts, self.path_draw, sizes, self.poisson, self.seconds, failures)

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The keys of ``switching:`` that describe this mode; ``flit_ns`` is not used."""
        keys = ("packet_bytes", "nic_mbps", "link_us", "random_drop", "feeder_packets", "queue_bytes")
        plain = {"mode": self.mode, **{key: getattr(self.queues, key) for key in keys}}
        return plain if self.failures is None else plain | {"link_failures": asdict(self.failures)}

    @property
    def links(self) -> Queues:
        """Rate and delay of links."""
        return self.queues

    @property
    def long_lived(self) -> bool:
        """Whether flows are long-lived."""
        return self.sizes is None

    def crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of a full packet over a channel between switches, and over both host channels.

        The serialization time on the sending host's channel is not included.

        Parameters
        ----------
        topology: the network.
        """
        link, packet = self.link_ticks(topology), self.queues.packet_bytes
        return float(link + packet), float(2 * link + packet)

    def weight(self, messages: Messages) -> int:
        """The counts of a flit of a program's messages: the bytes of a packet, which is one flit here."""
        return messages.packet_bytes

    def messages(
        self, topology: Topology, rendezvous: int, overhead_ns: float, buffered: bool = False, confirmed: bool = False
    ) -> Messages:
        """Full packets of ``queues.packet_bytes``, overheads in ticks; parameters as in ``SwitchingMode.messages``.

        Parameters
        ----------
        topology: the network.
        rendezvous: bytes above which a message waits for its receiver.
        overhead_ns: nanoseconds for which a send, or a receive, occupies its processor.
        buffered, confirmed: as in :class:`~flitlab.models.application.messages.Messages`.
        """
        size, overhead = self.queues.packet_bytes, self._overhead_ticks(topology, overhead_ns)
        return Messages(size, size, 0, 1, True, rendezvous, overhead, self.tick_ns(topology, None), buffered, confirmed)

    def session(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> Session:
        topology, transports, program = instance.topology, self.transport.transports(), None
        assert instance.routes is not None
        flows_of_each = [transport.flows for transport in transports.values()]
        if not isinstance(work, Workload):
            self.queues.check()
            self._check_length(topology, min(LATEST, self.queues.packet_bytes * MOST_PACKETS))
            flows = self._flows(instance, sum(flows_of_each), load, seed)
        elif len(transports) > 1:
            raise SpecError("must be one: a program has one connection per pair of hosts", key="transport")
        elif flows_of_each[0] > 1:
            raise SpecError("must be 1: a program has one connection per pair of hosts", key="flows")
        else:
            program = connections(work, topology.hosts)
            flows = program.flows
            transports = {name: replace(transport, start_ms=0.0) for name, transport in transports.items()}
        start_ms = default_start_ms((self.seconds / 2, self.seconds)) if self.long_lived else 0.0
        transports = {
            name: transport if transport.start_ms is not None else replace(transport, start_ms=start_ms)
            for name, transport in transports.items()
        }
        arrive = not self.long_lived and self.poisson
        kind = transport_of_flows(flows_of_each, len(flows.source), seed if arrive else None)
        session = make_session(
            topology, instance.routes, transports, self.queues, flows._replace(kind=kind), path_draw=self.path_draw,
            seed=seed, program=program,
        )  # fmt: skip
        if self.failures is not None:
            return with_failures(session, self.failures, self.routing)
        return session if timeline is None else with_timeline(session, timeline)

    def _flows(self, instance: Instance, flows: int, load: float, seed: int) -> Flows:
        traffic, packet = instance.traffic, self.queues.packet_bytes
        if self.sizes is None:
            return long_lived(traffic, flows)
        sizes = self.sizes.build()
        if not self.poisson:
            return together(traffic, flows, sizes, packet, seed)
        return self._arriving(instance, load, sizes, packet, packet, sizes.mean_packets(packet), seed)

    def mean_bytes(self, sizes: Sizes) -> float:
        """Bytes that a flow sends, on average: those of whole packets.

        Parameters
        ----------
        sizes: of flows.
        """
        return self.queues.packet_bytes * sizes.mean_packets(self.queues.packet_bytes)


class LinkFailuresKeys(BaseModel):
    """The keys of ``switching.link_failures``; see :class:`flitlab.models.transport.failures.LinkFailures`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    links: Amount
    """Number or share of the links that fail."""
    at_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """When they fail."""
    reroute_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Delay until flows take new paths."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Seed of the draw."""


@register("switching", "datagram")
class DatagramSpec(SwitchingSpec):
    """Packets of TCP, MPTCP, DCTCP or your own congestion control in queues that drop them.

    The capacity of a queue is ``queue_packets`` or ``queue_bytes``. ``transport:``, ``traffic.sizes`` and ``measure:
    {seconds, window}`` define the rest.
    """

    switching_mode: ClassVar[type[Datagram]] = Datagram
    related_keys: ClassVar[tuple[str, ...]] = ("transport", "traffic.sizes")

    mode: Literal["datagram"]
    """The switching mode."""
    packet_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=65535)] = 1000
    """Size of a data packet."""
    nic_mbps: Annotated[float, Field(ge=1e-6, le=1e7)] = 64.0
    """Rate of a channel of capacity 1."""
    link_us: Annotated[float, Field(ge=0, le=1e6)] = 100.0
    """Propagation delay of every link."""
    queue_packets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 100
    """Capacity of a queue."""
    queue_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)] | None = None
    """Capacity of a queue in bytes, instead of packets."""
    random_drop: bool = True
    """Drop early at random in nearly full queues; false: drop-tail."""
    feeder_packets: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] = 0
    """Capacity of the private queue, at host rate, of each subflow before the network. 0: none."""
    link_failures: LinkFailuresKeys | None = None
    """Links that fail during the run."""

    def tick_in(self, topology: Topology) -> Fraction:
        """Nanoseconds of a byte on the fastest channel."""
        return tick_of(topology, self) * 10**9

    @property
    def queues(self) -> Queues:
        """Links and queues of the keys; ``queue_packets`` becomes bytes."""
        queue_bytes = self.queue_packets * self.packet_bytes if self.queue_bytes is None else self.queue_bytes
        return Queues(
            self.packet_bytes, self.nic_mbps, self.link_us, queue_bytes, self.random_drop, self.feeder_packets
        )

    def build(self, setting: SwitchingContext) -> Datagram:
        """The mode with these queues, the transport (TCP by default) and the flows of the context.

        Default times of the transport are filled in.
        """
        failing, transport, sizes = self.link_failures, setting.transport, setting.sizes
        failures = None if failing is None else LinkFailures(**failing.model_dump())
        if transport is None:
            transport = make("transport", kind=self.default_transport)
        assert setting.routing is not None
        start_ms = 0.0 if sizes is not None or setting.window is None else default_start_ms(setting.window)
        times = times_of_keys(transport, setting.topology, setting.routes, self.queues, start_ms)
        transport = transport.model_copy(update=times)
        return Datagram(
            transport, self.queues, setting.routing, setting.path_draw, sizes, not setting.together,
            setting.arrival_seconds, failures,
        )  # fmt: skip
