# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: thresholds of priority flow control, and the marks of their outputs."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError
from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.rules.lossless import Buffers, Ports, make_ports
from flitlab.models.rules.priority_classes import Service, make_service
from flitlab.models.topology.graph import Topology

_MOST_BYTES = 1 << 60
"""Most bytes of the capacity of a queue: a float beyond the range of int64 would overflow."""

_RESUME_BYTES = 3072
"""Below the dynamic threshold, at which a port sends RESUME."""


class Storm(NamedTuple):
    """A host that sends PAUSE at ``at_us``, and RESUME at ``until_us``, None: never.

    priority_class: the class that it pauses, None: all.
    """

    host: int
    at_us: float
    until_us: float | None = None
    priority_class: str | None = None


class PriorityClass(NamedTuple):
    """A class of lossless queues: an item of ``switching.pfc.classes``.

    pause: whether it pauses the output before a full input port; else its queues drop packets. weight: its share of a
    link, of the sum of the weights of those that have packets. strict: it goes before the others, without a weight.
    queue_packets, queue_bytes: where it does not pause, the capacity of its queue of a link as fast as a host; neither:
    that of queues that drop.
    """

    name: str
    pause: bool = True
    weight: int = 1
    strict: bool = False
    queue_packets: int | None = None
    queue_bytes: int | None = None

    def plain(self) -> Keys:
        """The keys that are set."""
        defaults = PriorityClass(self.name)._asdict()
        return {key: value for key, value in self._asdict().items() if key == "name" or value != defaults[key]}


@dataclass(frozen=True)
class Lossless:
    """Queues that pause the output before them instead of dropping, ``switching.queue: lossless``, with ``pfc``.

    xoff, xon: full payloads charged to an input port above which it sends PAUSE, and below which it sends RESUME.
    response_ns: from the arrival of such a frame until the output obeys it. mark_probability: of the ECN mark at the
    upper threshold of ``switching.ecn``; above it all packets are marked. mark_own: a packet counts itself as part of
    the queue that it leaves. release: whether a packet leaves the queue, its charge included, at the ``end`` or the
    ``start`` of its service. ack_class: whether ACKs and other control packets share the class of ``data``, or are a
    ``strict`` one: sent first, not charged and not paused.
    buffer_bytes: shared by the ports of a switch, which replaces both thresholds; None: none. Every port has
    reserve_bytes and headroom_bytes (None: what comes in three link delays) of it for itself, and may use
    2 ** -alpha_shift of the rest that is free, twice as much for each doubling of the rate of hosts.
    pfc_storm: a host that pauses its switch. watchdog_us: an output of a switch that is paused for so long without a
    break discards its queue and ignores PAUSE for restore_us; None: there is no watchdog. classes: each has its own
    queues, charges, thresholds and pauses; (): there is one, which pauses.
    """

    xoff: int = 15
    xon: int = 12
    mark_probability: float = 1.0
    mark_own: bool = False
    release: str = "end"
    ack_class: str = "data"
    buffer_bytes: int | None = None
    reserve_bytes: int = 4096
    headroom_bytes: int | None = None
    alpha_shift: int = 3
    pfc_storm: Storm | None = None
    watchdog_us: float | None = None
    restore_us: float = 100.0
    response_ns: float = 0.0
    classes: tuple[PriorityClass, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of several classes; () for one that pauses: its keys change nothing."""
        single = len(self.classes) == 1 and self.classes[0].pause
        return () if single else tuple(one.name for one in self.classes)

    @property
    def pausing(self) -> list[int]:
        """The numbers of the classes that pause."""
        return [number for number, one in enumerate(self.classes) if one.pause] if self.classes else [0]

    def plain(self) -> Keys:
        """The keys that apply, without those of extensions that are not used."""
        keys = asdict(self)
        for key, default in (("release", "end"), ("ack_class", "data"), ("response_ns", 0.0)):
            if keys[key] == default:
                del keys[key]
        if self.pfc_storm is None:
            del keys["pfc_storm"]
        else:
            keys["pfc_storm"] = self.pfc_storm._asdict()
            if self.pfc_storm.priority_class is None:
                del keys["pfc_storm"]["priority_class"]
        if self.classes:
            keys["classes"] = [one.plain() for one in self.classes]
        else:
            del keys["classes"]
        for key in ("watchdog_us", "restore_us") if self.watchdog_us is None else ():
            del keys[key]
        unused = ("buffer_bytes", "reserve_bytes", "headroom_bytes", "alpha_shift")
        for key in unused if self.buffer_bytes is None else ("xoff", "xon"):
            del keys[key]
        return keys


class SharedSettings(NamedTuple):
    """The settings of shared buffers.

    size: int64 [switches], bytes of the shared part. reserve: bytes. switch, headroom, shift: int64 [links], of the
    port at the end of a channel, for each class; the fields of ``PORT`` have the same meaning.
    """

    size: Ints
    reserve: int
    switch: Ints
    headroom: Ints
    shift: Ints


class ClassSettings(NamedTuple):
    """The settings of several classes; a port is then that of a link and a class: ``link * classes + class``.

    names: of the classes. pauses, strict: int64 [classes], 1: it pauses, and it goes before the others. quantum: int64
    [classes], of :class:`~flitlab.models.rules.priority_classes.Service`. limit: int64 [links * classes], bytes that
    the queue of a class that does not pause holds. of_flow: int64 [flows], the class of each flow.
    """

    names: tuple[str, ...]
    pauses: Ints
    strict: Ints
    quantum: Ints
    limit: Ints
    of_flow: Ints

    def least_share(self) -> tuple[float, str]:
        """One over the least share of a link that a class which pauses is sure of beside the others by its weight, and
        `` of class NAME``. Strict classes are left out: they have all of the link, and leave no certain share of it.
        """
        quantum = np.where(self.strict == 0, self.quantum, 0)
        pausing = np.flatnonzero((self.pauses == 1) & (quantum > 0))
        if not len(pausing):
            return 1.0, ""
        least = pausing[np.argmin(quantum[pausing])]
        return float(quantum.sum() / quantum[least]), f" of class {self.names[least]}"

    def service(self) -> Service:
        """The service of the classes before the first packet."""
        return make_service(self.strict, self.quantum, len(self.limit) // len(self.names))


class PortSettings(NamedTuple):
    """The settings of lossless ports, int64 [links] each, by the channel that ends at the port.

    xoff, xon: bytes, for each class. delay: ticks of a PAUSE or RESUME. mark_span: of :meth:`span`; mark_probability:
    at the upper ECN threshold. mark_own: whether a packet counts itself. at_start: whether packets are released at the
    start of their service. strict: whether control packets are a class of their own. shared: of shared buffers, None
    without. watchdog: ticks of a pause after which it expires, and for which PAUSE is ignored then; None: there is
    none. classes: of several classes, None: there is one, which pauses.
    """

    xoff: Ints
    xon: Ints
    delay: Ints
    mark_span: Ints
    mark_own: bool
    at_start: bool
    strict: bool = False
    shared: SharedSettings | None = None
    watchdog: tuple[int, int] | None = None
    mark_probability: float = 1.0
    classes: ClassSettings | None = None

    @property
    def class_count(self) -> int:
        """The number of classes, and of ports of a channel."""
        return 1 if self.classes is None else len(self.classes.names)

    @property
    def of_flow(self) -> Ints | None:
        """The class of each flow, int64 [flows]; None where there is one class."""
        return None if self.classes is None else self.classes.of_flow

    def span(self, low: Ints, high: Ints) -> Ints:
        """Bytes of queue beyond the lower ECN threshold over which the probability of a mark would rise to 1.

        low, high: int64 [links], thresholds in bytes.
        """
        return mark_span(self.mark_probability, low, high)

    def state(self) -> tuple[Ports, Buffers | None]:
        """Ports, by link and class, and shared buffers of empty switches."""
        count = self.class_count
        ports = make_ports(*(np.repeat(part, count) for part in (self.xoff, self.xon, self.delay)))
        if self.shared is None:
            return ports, None
        size, reserve, *of_links = self.shared
        ports.switch, ports.most_headroom, ports.shift = (np.repeat(part, count) for part in of_links)
        return ports, Buffers(np.zeros_like(size), size, reserve, _RESUME_BYTES)


def mark_span(probability: float, low: Ints, high: Ints) -> Ints:
    """As :meth:`PortSettings.span`. probability: of a mark at the upper threshold."""
    return np.ceil((high - low) / probability).astype(np.int64)


def shared_settings(lossless: Lossless, topology: Topology, trip: Ints, ratio: Ints) -> SharedSettings | None:
    """The settings of shared buffers; None without.

    Parameters
    ----------
    lossless: the keys.
    topology: the network.
    trip: int64 [links], ticks of the link and of a PAUSE against it.
    ratio: int64 [links], ticks of a byte, times 2**RATIO_BITS.

    Raises
    ------
    SpecError: a buffer is smaller than the reserves and headrooms of its ports, for each class that pauses.
    """
    if lossless.buffer_bytes is None:
        return None
    ends = topology.dst, topology.host_switch, np.zeros(topology.hosts, np.int64)
    switch = np.concatenate(ends).astype(np.int64)
    headroom = (3 * trip // 2 << RATIO_BITS) // ratio
    if lossless.headroom_bytes is not None:
        headroom = np.full(len(trip), lossless.headroom_bytes)
    doublings = np.ceil(np.log2(np.maximum(ratio[-1] / ratio, 1.0))).astype(np.int64)
    ports = topology.channels + topology.hosts
    of_port = len(lossless.pausing) * (headroom[:ports] + lossless.reserve_bytes)
    own = np.bincount(switch[:ports], of_port, topology.switches).astype(np.int64)
    if (own > lossless.buffer_bytes).any():
        raise SpecError(
            f"reserves and headrooms of the ports of a switch take {own.max()} bytes", key="pfc.buffer_bytes"
        )
    shift = np.maximum(lossless.alpha_shift - doublings, 0)
    return SharedSettings(lossless.buffer_bytes - own, lossless.reserve_bytes, switch, headroom, shift)


def class_settings(
    lossless: Lossless, mtu: int, queue_bytes: Ints, ratio: Ints, of_flow: Ints
) -> ClassSettings | None:  # fmt: skip
    """The settings of several classes; None where there is one that pauses.

    Parameters
    ----------
    lossless: the keys.
    mtu: bytes of a full packet.
    queue_bytes: int64 [links], capacity of queues that drop.
    ratio: int64 [links], ticks of a byte, times 2**RATIO_BITS; the last link is one of a host.
    of_flow: int64 [flows], the class of each flow.
    """
    if not lossless.class_names:
        return None
    limits = []
    for one in lossless.classes:
        own = one.queue_bytes if one.queue_packets is None else one.queue_packets * mtu
        limits.append(queue_bytes if own is None else np.maximum(np.ceil(own * (ratio[-1] / ratio)), mtu))
    pauses, strict, weight = (
        np.array([getattr(one, key) for one in lossless.classes], np.int64) for key in ("pause", "strict", "weight")
    )
    limit = np.minimum(np.stack(limits, axis=1), float(_MOST_BYTES)).astype(np.int64).ravel()
    return ClassSettings(lossless.class_names, pauses, strict, weight * mtu, limit, of_flow)


def port_settings(
    lossless: Lossless, payload: int, delay: Ints, low: Ints, high: Ints, shared: SharedSettings | None = None,
    classes: ClassSettings | None = None,
) -> PortSettings:  # fmt: skip
    """The settings of all ports.

    Parameters
    ----------
    lossless: the keys.
    payload: bytes of a full payload.
    delay: int64 [links], ticks of a PAUSE or RESUME.
    low, high: int64 [links], ECN thresholds in bytes.
    shared: from :func:`shared_settings`.
    classes: from :func:`class_settings`.
    """
    same = np.ones(len(delay), np.int64)
    span = mark_span(lossless.mark_probability, low, high)
    return PortSettings(
        payload * lossless.xoff * same, payload * lossless.xon * same, delay, span, lossless.mark_own,
        lossless.release == "start", lossless.ack_class == "strict", shared,
        mark_probability=lossless.mark_probability, classes=classes,
    )  # fmt: skip
