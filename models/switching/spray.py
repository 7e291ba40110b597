# SPDX-License-Identifier: Apache-2.0
"""Sprayed packets: a path per packet, two queues per output, and trimming."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, make, register, whole
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import Routes, VcPolicy
from flitlab.models.switching.byte_switching import ByteSwitching, transport_of_flows
from flitlab.models.switching.switching_mode import Certify, SwitchingContext, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Recorded, Source
from flitlab.models.transport.fabric import NEVER_MARKS, Fabric, SpraySession, make_spray_session
from flitlab.models.transport.fabric_changes import check_changes, with_changes
from flitlab.models.transport.flows import Flows, in_bytes, together
from flitlab.models.transport.lossless import Lossless, PriorityClass, Storm
from flitlab.models.transport.messages import message_flows
from flitlab.models.transport.queues import tick_of
from flitlab.models.transport.session import LATEST
from flitlab.models.transport.sizes import Sizes, SizesSpec

KEY_PATHS = {
    **{key: f"switching.{key}" for key in ("header_bytes", "at_switch", "queue_bytes", "ecn", "trim")},
    **{key: key for key in ("traffic", "loads", "transport", "routing", "application", "timeline", "timeline.factor")},
    **{key: f"traffic.{key}" for key in ("sizes", "sizes.bytes", "sizes.path", "sizes.mean_bytes")},
    "capacity": "topology.capacity", "host_capacity": "topology.host_capacity", "link_us": "switching.link_us",
    **{f"pfc.{key}": f"switching.pfc.{key}" for key in ("buffer_bytes", "pfc_storm", "pfc_storm.priority_class")},
    "seconds": "measure.seconds", "flows": "transport.flows", "priority_class": "transport.priority_class",
}  # fmt: skip
"""Key of an error in a session -> its full path in the configuration."""


@dataclass(frozen=True)
class Spray(ByteSwitching):
    """Packets that take a path each, in queues that trim packets when full.

    A tick is the time of a byte on the fastest channel. poisson: flows arrive in Poisson processes at the load; else
    every pair of the pattern has one from tick 0. sizes: None to follow a trace given as traffic. seconds: how long
    flows arrive, and the longest run. allow_deadlock: whether lossless queues run without a certificate. may_deadlock:
    whether they have none.
    """

    mode: ClassVar[str] = "spray"
    key_paths = KEY_PATHS

    fabric: Fabric
    sizes: SizesSpec | None = None
    poisson: bool = True
    seconds: float = 2.0
    allow_deadlock: bool = False
    may_deadlock: bool = False

    @property
    def links(self) -> Fabric:
        """Rate and delay of links."""
        return self.fabric

    @property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        sizes = self.sizes and [self.sizes.model_dump(mode="json"), *self.sizes.build().table()]
        transport, fabric = self.transport.model_dump(mode="json"), asdict(self.fabric)
        del fabric["lossless"]
        if self.fabric.marks:
            del fabric["marks"]
        if self.fabric.lossless is not None:
            fabric["lossless"] = self.fabric.lossless.plain()
        return content_hash(transport, fabric, sizes, self.poisson, self.seconds)

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The keys of ``switching:`` that describe this mode; ``flit_ns`` is not used."""
        keys, lossless = asdict(self.fabric), self.fabric.lossless
        del keys["lossless"], keys["marks"]
        plain = {"mode": self.mode, **keys, "ecn": None if self.fabric.ecn is None else list(self.fabric.ecn)}
        if not self.fabric.marks:
            return plain | {"queue": "drop_tail"}
        if lossless is None:
            return plain
        del plain["trim"]
        pfc = lossless.plain()
        marks = {key: pfc.pop(key) for key in ("mark_probability", "mark_own")}
        return plain | {"queue": "lossless", "pfc": pfc, **marks, "allow_deadlock": self.allow_deadlock}

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode, and the certificate of lossless queues as text: a class is one VC, a queue the buffer of a channel.

        Packets keep their class, and all classes have the same routes: one certificate holds for each of them.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        certify: the function that certifies routes.

        Raises
        ------
        SpecError: packets may deadlock, and ``allow_deadlock`` is not set.
        """
        if self.fabric.lossless is None or not self.fabric.lossless.pausing:
            return self, ""
        certificate = certify(topology, replace(routes, vc_policy=VcPolicy.ANY), 1, True)
        if not certificate.acyclic and not self.allow_deadlock:
            raise SpecError(
                f"lossless queues {certificate.note.partition(': ')[2]}; use routing updown, or "
                "switching.allow_deadlock: true",
                key="allow_deadlock",
            )
        return replace(self, may_deadlock=not certificate.acyclic), certificate.note

    def crossing(self, topology: Topology) -> tuple[float, float]:
        """Ticks of the shortest packet over a channel between switches, and over both host channels.

        The serialization time on the sending host's channel is not included.

        Parameters
        ----------
        topology: the network.
        """
        link, switch = self.link_ticks(topology), self.fabric.switch_ticks(topology)
        least = max(1, self.fabric.header_bytes)
        last = float(self.serialization_ticks(topology, np.array([float(least)]))[0])
        return float(link + switch + least), 2 * link + switch + last

    def messages(
        self, topology: Topology, rendezvous: int, overhead_ns: float, buffered: bool = False, confirmed: bool = False
    ) -> Messages:
        """Packets of the fabric, in bytes, overheads in ticks; parameters as in ``SwitchingMode.messages``.

        Parameters
        ----------
        topology: the network.
        rendezvous: bytes above which a message waits for its receiver.
        overhead_ns: nanoseconds for which a send, or a receive, occupies its processor.
        buffered, confirmed: as in :class:`~flitlab.models.application.messages.Messages`.
        """
        fabric = self.fabric
        return Messages(
            packet_bytes=fabric.payload, flit_bytes=1, header_flits=fabric.header_bytes, packet_flits=fabric.mtu_bytes,
            whole=False, rendezvous=rendezvous, overhead=self._overhead_ticks(topology, overhead_ns),
            tick_ns=self.tick_ns(topology, None), buffered=buffered, confirmed=confirmed,
        )  # fmt: skip

    def session(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> SpraySession:
        session = self._static_session(instance, work, load, seed)
        if timeline is None:
            return session
        assert instance.routes is not None
        return with_changes(session, instance.routes, timeline)

    def _static_session(self, instance: Instance, work: Source | Workload, load: float, seed: int) -> SpraySession:
        """The session on a network that does not change."""
        assert instance.routes is not None
        sprayings, topology = self.transport.sprayings(), instance.topology
        transports = tuple(sprayings.values())
        if isinstance(work, Workload):
            if len(transports) > 1:
                raise SpecError("must be one: a message of a program is one flow", key="transport")
            if transports[0].flows > 1:
                raise SpecError("must be 1: a message of a program is one flow", key="flows")
            program = message_flows(work)
            return make_spray_session(
                topology, instance.routes, transports, self.fabric, program.flows, seed, program=program
            )
        self._check_length(topology)
        flows_of_each = [spraying.flows for spraying in transports]
        flows = self._flows(instance, sum(flows_of_each), load, seed)
        arrive = self.sizes is not None and self.poisson
        kind = transport_of_flows(flows_of_each, len(flows.source), seed if arrive else None)
        return make_spray_session(
            topology, instance.routes, transports, self.fabric, flows._replace(kind=kind), seed, names=tuple(sprayings)
        )

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links that are too slow, and for routes that entropy values cannot select.

        Parameters
        ----------
        timeline: events of the network during the run; None: it does not change.
        routes: its routes.
        """
        if timeline is not None and self.fabric.lossless is not None:
            for tick in timeline.reroutes:
                remaining = timeline.surviving(timeline.epoch_at(tick))
                try:
                    self.certified(remaining.topology, timeline.routes(remaining, routes))
                except SpecError as error:
                    error.key = "timeline"
                    raise
        check_changes(timeline, routes, self.fabric)

    def _flows(self, instance: Instance, flows: int, load: float, seed: int) -> Flows:
        """Flows with bytes of payload in the place of packets."""
        traffic = instance.traffic
        if self.sizes is None:
            return _trace_flows(traffic.recorded, flows, tick_of(instance.topology, self.fabric))
        sizes = self.sizes.build()
        if not self.poisson:
            return together(traffic, flows, sizes, 1, seed)
        payload, mtu = self.fabric.payload, self.fabric.mtu_bytes
        mean = self.mean_bytes(sizes) / mtu
        return in_bytes(self._arriving(instance, load, sizes, payload, mtu, mean, seed), sizes, seed)

    def queue_sizes(self, instance: Instance, work: Source | Workload, load: float, seed: int) -> dict[str, Ints]:
        """Capacities and ECN thresholds of all links, in bytes; nothing of lossless queues, whose ``pfc`` is stated.

        Parameters
        ----------
        instance, work: of the scenario.
        load, seed: with which a run can start; sizes do not depend on them.
        """
        if self.fabric.lossless is not None:
            return {}
        session = self._static_session(instance, work, load, seed)
        marks = session.low < NEVER_MARKS
        thresholds = np.concatenate([session.low[marks], session.high[marks]])
        of_links = {"queue_bytes": session.queue_bytes, "ecn_bytes": thresholds}
        return {name: values for name, values in of_links.items() if len(values)}

    def mean_bytes(self, sizes: Sizes) -> float:
        """Bytes that a flow sends, on average: payload, and a header for each packet.

        Parameters
        ----------
        sizes: of flows.
        """
        return sizes.mean + self.fabric.header_bytes * sizes.mean_packets(self.fabric.payload)


def _trace_flows(recorded: Recorded | None, flows: int, tick: Fraction) -> Flows:
    """Each message of a trace as ``flows`` flows. Raises ``SpecError`` if there is no trace."""
    if recorded is None:
        raise SpecError("missing: flows of mode spray end, unless traffic is a trace with bytes", key="sizes")
    if (recorded.after >= 0).any() or recorded.repeat:
        raise SpecError("mode spray follows neither column after nor repeat of a trace", key="traffic")
    if recorded.size_unit == "flits":
        raise SpecError("the trace has sizes in flits; the column must be bytes", key="traffic")
    if (recorded.size < 1).any():
        raise SpecError("the trace has a message of 0 bytes", key="traffic")
    unit = tick * 10**6 if recorded.in_us else 1
    times = [ceil(time / unit) for time in recorded.times]
    if max(times) > LATEST:
        raise SpecError(f"the trace lasts {max(times)} ticks; at most {LATEST} are counted", key="traffic")
    ticks = np.array(times, np.int64)[recorded.when]
    order = np.repeat(np.argsort(ticks, kind="stable"), flows)
    return Flows(recorded.source[order], recorded.destination[order], recorded.size[order], ticks[order])


def _ascending(marks: list[float]) -> list[float]:
    if len(marks) != 2 or not 0 <= marks[0] <= marks[1]:
        raise ValueError("must be two numbers, 0 or more, ascending")
    return marks


class StormKeys(BaseModel):
    """The keys of ``switching.pfc.pfc_storm``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    host: Annotated[int, BeforeValidator(whole), Field(ge=0)]
    """The host."""
    at_us: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """When it sends PAUSE."""
    until_us: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """When it sends RESUME; null: never."""
    priority_class: str | None = None
    """The class that it pauses; null: all."""


class PriorityClassKeys(BaseModel):
    """The keys of a class of ``switching.pfc.classes``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=40)]
    """Its name."""
    pause: bool = True
    """Whether it pauses the output before a full input port; else its queues drop."""
    weight: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1000)] = 1
    """Its share of a link, of the sum of the weights of classes that have packets."""
    strict: bool = False
    """Whether it goes before the others, without a weight."""
    queue_packets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Capacity of its queue if it does not pause. null: as of queues that drop."""
    queue_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**10)] | None = None
    """The same in bytes."""


class PfcKeys(BaseModel):
    """The keys of ``switching.pfc``, priority flow control; see :class:`flitlab.models.transport.lossless.Lossless`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    xoff: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 15
    """Full payloads charged to an input port above which it sends PAUSE. [packet]"""
    xon: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 12
    """Full payloads charged to it below which it sends RESUME. [packet]"""
    response_ns: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """Time from the arrival of a PAUSE or RESUME until the output obeys it."""
    release: Literal["end", "start"] = "end"
    """Whether a packet leaves queue and charge at the end or the start of its service."""
    ack_class: Literal["data", "strict"] = "data"
    """Whether ACKs are charged and paused with data, or go first and are neither."""
    buffer_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**12)] | None = None
    """Buffer of a switch that its input ports share, with dynamic thresholds; null: thresholds per port."""
    reserve_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] = 4096
    """Bytes of it that each port has for itself."""
    headroom_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)] | None = None
    """Bytes of it that each port has for packets after PAUSE; null: what comes in three link delays."""
    alpha_shift: Annotated[int, BeforeValidator(whole), Field(ge=0, le=30)] = 3
    """A port may use 2^-alpha_shift of the free bytes of the rest."""
    pfc_storm: StormKeys | None = None
    """A host that pauses its switch."""
    watchdog_us: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """An output paused for so long discards its queue; null: never."""
    restore_us: Annotated[float, Field(gt=0, le=1e9)] = 100.0
    """Time for which it ignores PAUSE then."""
    classes: Annotated[list[PriorityClassKeys], Field(min_length=1, max_length=8)] | None = None
    """Classes with queues and pauses of their own; null: one."""


@register("switching", "spray", aliases=("packet_spraying",))
class SpraySpec(SwitchingSpec):
    """Packets that take a path each, in queues that trim packets when full, as in Ultra Ethernet.

    ``transport:`` is nscc by default; ``traffic.sizes`` sets flow sizes. The capacity of a queue for data is
    ``queue_packets`` or ``queue_bytes``, by default one bandwidth-delay product. ``ecn``: packets in the queue from
    which on some, and above which all packets are marked; values up to 1 are fractions of the capacity.
    """

    switching_mode: ClassVar[type[Spray]] = Spray
    related_keys: ClassVar[tuple[str, ...]] = ("transport", "traffic.sizes")
    default_transport: ClassVar[str] = "nscc"

    mode: Literal["spray"]
    """The switching mode."""
    mtu_bytes: Annotated[int, BeforeValidator(whole), Field(ge=65, le=65535)] = 4150
    """Size of a full packet, header included."""
    header_bytes: Annotated[int, BeforeValidator(whole), Field(ge=0, le=65534)] = 64
    """Header of a packet, and size of a trimmed one."""
    control_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=65534)] = 64
    """Size of an ACK and of other control packets."""
    nic_mbps: Annotated[float, Field(ge=1e-6, le=1e7)] = 100_000.0
    """Rate of a channel of capacity 1."""
    link_us: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """Propagation delay of every link."""
    switch_ns: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """Delay of a switch."""
    queue_packets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Capacity of a data queue. null: one bandwidth-delay product."""
    queue_bytes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**10)] | None = None
    """The same in bytes."""
    ecn: Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], AfterValidator(_ascending)] | None = None
    """Queue lengths where marking starts, and where all is marked; up to 1: shares of the capacity. [packet]"""
    trim: bool = True
    """Trim packets in full queues; false: drop them."""
    at_switch: Literal["ecmp", "round_robin", "adaptive", "flowlet", "ecmp_adaptive"] = "ecmp"
    """How a switch chooses among next hops."""
    queue: Literal["drop_tail", "ecn", "trim", "lossless"] | None = None
    """What full queues do: drop_tail and ecn drop, ecn also marks, trim trims and marks, lossless pauses the output
    before it. null: as ``trim`` says."""
    pfc: PfcKeys | None = None
    """Priority flow control of lossless queues; null: its defaults."""
    mark_probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Probability of a mark at the upper threshold of ecn, of lossless queues."""
    mark_own: bool = False
    """Whether a packet counts itself as part of the lossless queue that it leaves."""
    allow_deadlock: bool = False
    """Run lossless queues without a certificate against deadlock."""

    def tick_in(self, topology: Topology) -> Fraction:
        """Nanoseconds of a byte on the fastest channel."""
        return tick_of(topology, self) * 10**9

    @property
    def fabric(self) -> Fabric:
        """Links, switches and packets of the keys; ``queue_packets`` becomes bytes."""
        queue_bytes = self.queue_bytes if self.queue_packets is None else self.queue_packets * self.mtu_bytes
        return Fabric(
            mtu_bytes=self.mtu_bytes,
            header_bytes=self.header_bytes,
            control_bytes=self.control_bytes,
            nic_mbps=self.nic_mbps,
            link_us=self.link_us,
            switch_ns=self.switch_ns,
            queue_bytes=queue_bytes,
            ecn=None if self.ecn is None else (self.ecn[0], self.ecn[1]),
            trim=self.trim and self.queue in (None, "trim"),
            at_switch=self.at_switch,
            lossless=self._lossless if self.queue == "lossless" else None,
            marks=self.queue != "drop_tail",
        )

    @property
    def _lossless(self) -> Lossless:
        """Lossless queues as the engines use them."""
        pfc = self.pfc or PfcKeys()
        storm = None if pfc.pfc_storm is None else Storm(**pfc.pfc_storm.model_dump())
        keys = pfc.model_dump(exclude={"pfc_storm", "classes"})
        classes = tuple(PriorityClass(**one.model_dump()) for one in pfc.classes or ())
        return Lossless(
            **keys, mark_probability=self.mark_probability, mark_own=self.mark_own, pfc_storm=storm, classes=classes
        )

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: two keys for the queue capacity, and a queue below one packet.

        Parameters
        ----------
        topology: the network.
        routes: its routes, None if other errors prevent them.
        flits: packet lengths, None if other errors prevent them.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        if self.queue_packets is not None and self.queue_bytes is not None:
            yield SpecError("give either queue_packets or queue_bytes", key="switching.queue_bytes")
        elif self.queue_bytes is not None and self.queue_bytes < self.mtu_bytes:
            yield SpecError(f"a packet of {self.mtu_bytes} bytes does not fit", key="switching.queue_bytes")
        yield from self._queue_errors() if self.queue != "lossless" else self._lossless_errors()

    def _queue_errors(self) -> Iterator[SpecError]:
        """Errors: keys that do not apply to queues that drop or trim."""
        for key in ("pfc", "allow_deadlock", "mark_probability", "mark_own"):
            if getattr(self, key) != type(self).model_fields[key].default:
                yield SpecError("is for queue: lossless", key=f"switching.{key}")
        if self.queue is not None and "trim" in self.model_fields_set and self.trim != (self.queue == "trim"):
            yield SpecError(f"contradicts queue: {self.queue}; give one of them", key="switching.trim")
        if self.queue == "drop_tail" and self.ecn is not None:
            yield SpecError("queue: drop_tail marks nothing; choose queue: ecn", key="switching.ecn")

    def _lossless_errors(self) -> Iterator[SpecError]:
        """Errors: keys that do not apply to lossless queues."""
        if self.ecn is None and self.mark_probability != type(self).model_fields["mark_probability"].default:
            yield SpecError("needs switching.ecn: without it the transport says where queues mark, and how often",
                            key="switching.mark_probability")  # fmt: skip
        for key in ("queue_packets", "queue_bytes"):
            if getattr(self, key) is not None:
                yield SpecError("lossless queues have no capacity: they pause the output before them",
                                key=f"switching.{key}")  # fmt: skip
        if self.trim and "trim" in self.model_fields_set:
            yield SpecError("lossless queues never trim", key="switching.trim")
        if self.ecn is not None and self.ecn[1] <= 1:
            yield SpecError("lossless queues have no capacity of which thresholds are shares: give packets",
                            key="switching.ecn")  # fmt: skip
        pfc = self.pfc or PfcKeys()
        yield from self._buffer_errors(pfc)
        yield from self._class_errors(pfc.classes or [])
        if pfc.classes and not any(one.pause for one in pfc.classes):
            for key in ("buffer_bytes", "pfc_storm", "watchdog_us"):
                if getattr(pfc, key) is not None:
                    yield SpecError("needs a class that pauses", key=f"switching.pfc.{key}")
        if pfc.watchdog_us is None and "restore_us" in pfc.model_fields_set:
            yield SpecError("needs watchdog_us: when outputs discard their queues", key="switching.pfc.restore_us")
        if pfc.buffer_bytes is None and pfc.xon > pfc.xoff:
            yield SpecError(f"must be at most xoff: {pfc.xoff}", key="switching.pfc.xon")

    def _buffer_errors(self, pfc: PfcKeys) -> Iterator[SpecError]:
        """Errors: keys of static thresholds beside a shared buffer, or of a shared buffer without one."""
        if pfc.buffer_bytes is not None:
            for key in {"xoff", "xon"} & pfc.model_fields_set:
                yield SpecError("the thresholds of a shared buffer are dynamic", key=f"switching.pfc.{key}")
            return
        for key in {"reserve_bytes", "headroom_bytes", "alpha_shift"} & pfc.model_fields_set:
            yield SpecError("needs buffer_bytes: a buffer that ports share", key=f"switching.pfc.{key}")

    def _class_errors(self, classes: list[PriorityClassKeys]) -> Iterator[SpecError]:
        """Errors: two classes of a name, and keys that do not apply to a class."""
        names = [one.name for one in classes]
        for number, one in enumerate(classes):
            at = f"switching.pfc.classes.{number}"
            if one.name in names[:number]:
                yield SpecError(f"there is a class {one.name} already", key=f"{at}.name")
            if one.strict and "weight" in one.model_fields_set:
                yield SpecError("a strict class goes first, without a weight", key=f"{at}.weight")
            if one.pause:
                for key in {"queue_packets", "queue_bytes"} & one.model_fields_set:
                    yield SpecError("a class that pauses has no capacity; or give pause: false", key=f"{at}.{key}")
            elif one.queue_packets is not None and one.queue_bytes is not None:
                yield SpecError("give either queue_packets or queue_bytes", key=f"{at}.queue_bytes")
            elif one.queue_bytes is not None and one.queue_bytes < self.mtu_bytes:
                yield SpecError(f"a packet of {self.mtu_bytes} bytes does not fit", key=f"{at}.queue_bytes")

    def build(self, setting: SwitchingContext) -> Spray:
        """The mode with these links, and the transport and flows of the context."""
        transport = setting.transport or make("transport", kind=self.default_transport)
        return Spray(
            transport, self.fabric, setting.sizes, not setting.together, setting.arrival_seconds, self.allow_deadlock
        )
