# SPDX-License-Identifier: Apache-2.0
"""Several classes of packets at once, each with its own demand, packet lengths, priority and virtual channels."""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import scipy
from pydantic import BeforeValidator, ConfigDict, Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import Parameters, SpecError, nested, register, whole
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficClass, TrafficSpec
from flitlab.models.traffic.validation import ROUNDING

MAX_CLASSES = 16
"""The most classes: hosts compare all of theirs whenever they send."""

Flits = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)]


class Share(Parameters):
    """A packet length of a mix, and its share."""

    flits: Flits
    """Packet length. [flit]"""
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Weight of this length in the mix."""


class ReplyKeys(Parameters):
    """``reply:`` the packet that the receiver of each packet of a class sends back."""

    class_: Annotated[str, Field(alias="class")]
    """The class of the replies, with only ``name``, ``priority``, ``vcs``, ``subnet`` and ``source_queue``."""
    packet_flits: Flits | list[Share] = 1
    """Length of a reply, or a mix of lengths."""
    delay_ticks: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 1
    """From the delivery of the request to the creation of its reply."""
    queue: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] | None = None
    """Replies that a host may owe: while as many wait, are sent, or are due, it receives no request. null: any."""


class ClassKeys(Parameters):
    """The keys of a class that do not belong to its pattern, which are those of ``traffic:``."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """Name of the class in results."""
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Its part of the load. Without a load: an equal part of what the other shares leave of 1."""
    load: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Its load where that does not grow with the loads of the study. [flit/tick/host]"""
    packet_flits: Flits | list[Share] = 1
    """Packet length, or a mix of lengths ``[{flits, share}, ...]``."""
    arrivals: Literal["bernoulli", "poisson", "onoff"] | None = None
    """When hosts create its packets. null: as ``traffic.arrivals``."""
    burst: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    """Mean packets of a burst of ``onoff``. null: as ``traffic.burst``. [packet]"""
    priority: Annotated[int, Field(ge=-(10**6), le=10**6)] = 0
    """The greater one goes first: at hosts, and with ``switching.priority: class`` in switches."""
    vcs: tuple[int, int] | None = None
    """First and last virtual channel that its packets may take. null: all."""
    subnet: Annotated[int, BeforeValidator(whole), Field(ge=0)] | None = None
    """Subnet of its packets, from 0. null: each packet draws one."""
    source_queue: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Name of a source queue that classes of mode wormhole share at each host. null: its own; requests whose replies
    have no limit, and these replies, share one."""
    reply: ReplyKeys | None = None
    """What the receiver of a packet sends back: ``class``, ``packet_flits``, ``delay_ticks``, ``queue``."""


@register("traffic", "classes")
class Classes(TrafficSpec):
    """Several ``classes`` of packets at once; ``kind: classes`` may be omitted.

    Each class has the keys of a pattern, and a ``share`` of the load or a fixed ``load``. It is drawn by a process of
    its own and has a source queue of its own at every host. In mode wormhole classes of one ``source_queue`` share
    one, and so do requests whose replies have no limit and these replies. A free host sends the oldest packet of the
    greatest ``priority`` that can start; equal priorities take turns. In mode wormhole hosts decide so for every flit.
    ``vcs: [0, 1]`` keeps packets to these virtual channels on every channel, ``subnet: 0`` to one of
    ``switching.subnets``. classes.csv has latency and throughput of
    each class.

    The receiver of a packet of a class with a ``reply`` sends one back, of another class. Its source queue has no
    limit, so that requests always drain, unless ``queue`` sets one (modes vct and wormhole). Loads count requests only.

    Modes vct, wormhole and ideal have classes. Ceilings are those of the sum of their demands. ``arrivals`` and
    ``burst`` hold for the classes without keys of their own.

    Example: ``traffic: {kind: classes, classes: [{name: a, kind: uniform, load: 0.1}, {name: b, kind: uniform}]}``
    """

    classes: Annotated[list[ClassKeys], Field(min_length=1, max_length=MAX_CLASSES)]
    """The classes: ``name``, the keys of a pattern, ``share`` or ``load``, ``packet_flits``, ``priority``, ``vcs``."""

    def demand(self, topology: Topology) -> Traffic:
        shares, requests = self._shares(), self._requests()
        built: dict[int, TrafficClass] = {}
        for i, keys in enumerate(self.classes):
            if keys.name not in requests:
                built[i] = _traffic_class(keys, f"classes[{i}]", shares[i], topology)
        for i, keys in enumerate(self.classes):
            if keys.name in requests:
                request = requests[keys.name]
                built[i] = _replies(keys, request, self.classes[request].reply, built[request])
        classes = tuple(built[i] for i in range(len(self.classes)))
        growing = summed_demand(self.kind, topology, [(one.demand, one.share) for one in classes if one.share])
        fixed = summed_demand(self.kind, topology, [(one.demand, one.load) for one in classes if one.load])
        if growing is None:
            raise SpecError("needs a class with a share: with fixed loads only, loads would change nothing", "classes")
        if fixed is not None and max(fixed.rate.max(), fixed.column_sums.max()) > 1 + ROUNDING:
            raise SpecError("have fixed loads that exceed the rate of a host's channel", "classes")
        notes = {"classes": ", ".join(map(_described, classes))}
        return replace(growing, background=fixed, classes=classes, notes=notes)

    def _requests(self) -> dict[str, int]:
        """Return the number of the request class of every class of replies, by name."""
        requests: dict[str, int] = {}
        names = [keys.name for keys in self.classes]
        for i, keys in enumerate(self.classes):
            if keys.reply is None:
                continue
            of, path = keys.reply.class_, f"classes[{i}].reply.class"
            if of not in names:
                raise SpecError("is no name of a class", path, choices=names)
            if of in requests:
                raise SpecError(f"{of} has the replies of another class", path)
            own = self.classes[names.index(of)]
            other_keys = own.model_fields_set - {"name", "priority", "vcs", "subnet", "source_queue"} | set(
                own.model_extra or {}
            )
            if other_keys:
                problem = (
                    f"is not for {of}, a class of replies: it has only name, priority, vcs, subnet and source_queue"
                )
                raise SpecError(problem, f"classes[{names.index(of)}].{min(other_keys)}")
            requests[of] = i
        return requests

    def _shares(self) -> list[float]:
        """Return the share of each class, 0 where it has a fixed load, or where it has replies."""
        names = [keys.name for keys in self.classes]
        replies = {keys.reply.class_ for keys in self.classes if keys.reply is not None}
        for i, keys in enumerate(self.classes):
            if keys.name in names[:i]:
                raise SpecError(f"{keys.name} is the name of another class", f"classes[{i}].name")
            if keys.share is not None and keys.load is not None:
                raise SpecError("is for a class without a load, which does not grow", f"classes[{i}].share")
        open_shares = [keys.share is None and keys.load is None and keys.name not in replies for keys in self.classes]
        left = 1.0 - sum(keys.share or 0.0 for keys in self.classes)
        if any(open_shares) and left <= 0:
            place = open_shares.index(True)
            raise SpecError("is missing: the shares of the other classes leave nothing of 1", f"classes[{place}].share")
        equal = left / max(sum(open_shares), 1)
        return [equal if opened else keys.share or 0.0 for keys, opened in zip(self.classes, open_shares, strict=True)]


def _traffic_class(keys: ClassKeys, path: str, share: float, topology: Topology) -> TrafficClass:
    """Build the class of some keys.

    path: of the keys. share: of the load, 0 for a fixed load.
    """
    pattern: Keys = dict(keys.model_extra or {})
    demand: Traffic = nested("traffic", pattern, path, lambda spec: spec.build(topology))
    if demand.background is not None or demand.alternates or demand.classes:
        raise SpecError("must be one demand that scales with the load", f"{path}.kind")
    lengths, weights = _mix(keys.packet_flits, path)
    vcs = _vc_range(keys, path)
    return TrafficClass(
        keys.name, demand, share, keys.load or 0.0, lengths, weights, keys.priority, vcs, subnet=keys.subnet,
        arrivals=keys.arrivals, burst=keys.burst, source_queue=keys.source_queue,
    )  # fmt: skip


def _replies(keys: ClassKeys, number: int, reply: ReplyKeys | None, request: TrafficClass) -> TrafficClass:
    """Build the class of the replies to another one, ``request``, which has this number and these keys of replies."""
    assert reply is not None
    lengths, weights = _mix(reply.packet_flits, f"classes[{number}].reply")
    one = TrafficClass(
        keys.name, request.demand, request.share, request.load, lengths, weights, keys.priority,
        _vc_range(keys, "classes"), number, reply.delay_ticks, keys.subnet, reply.queue, source_queue=keys.source_queue,
    )  # fmt: skip
    source, target, amount = request.demand.pairs()
    size, flits = (request.demand.topology.hosts,) * 2, one.mean_flits / request.mean_flits
    back = scipy.sparse.csr_array((np.asarray(amount) * flits, (target, source)), size)
    return replace(one, demand=table_traffic("replies", request.demand.topology, back, hose=False))


def _vc_range(keys: ClassKeys, path: str) -> tuple[int, int] | None:
    """Return the first VC of a class and one past the last, None for all; path: of its keys."""
    if keys.vcs is None:
        return None
    if not 0 <= keys.vcs[0] <= keys.vcs[1]:
        raise SpecError("must be the first and the last virtual channel, from 0", f"{path}.vcs")
    return keys.vcs[0], keys.vcs[1] + 1


def _described(one: TrafficClass) -> str:
    """Describe a class in one line."""
    offered = f"share {one.share:g}" if one.share else f"load {one.load:g}"
    offered = offered if one.request is None else f"to class {one.request}"
    flits = " and ".join(map(str, one.flits))
    vcs = "" if one.vcs is None else f", VCs {one.vcs[0]} to {one.vcs[1] - 1}"
    subnet = "" if one.subnet is None else f", subnet {one.subnet}"
    return f"{one.name} ({one.demand.kind}, {offered}, flits {flits}, priority {one.priority}{vcs}{subnet})"


def _mix(mix: int | list[Share], path: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the lengths of a mix and their shares; path: of the mapping with the mix."""
    if isinstance(mix, int):
        return (mix,), (1.0,)
    if not mix:
        raise SpecError("must list a length", f"{path}.packet_flits")
    return tuple(part.flits for part in mix), tuple(part.share for part in mix)


def summed_demand(kind: str, topology: Topology, parts: list[tuple[Traffic, float]]) -> Traffic | None:
    """Return the sum of demands, each times a factor; None for no parts.

    Parameters
    ----------
    kind: of the sum.
    topology: the network.
    parts: demands and their factors.
    """
    if not parts:
        return None
    first, factor = parts[0][0], sum(amount for _, amount in parts)
    if all(demand.content_hash == first.content_hash for demand, _ in parts):  # no pairs: there may be 10**8
        if factor == 1.0:
            return replace(first, kind=kind)
        return replace(first, kind=kind, rate=first.rate * factor, weight=first.weight * factor)
    size = (topology.hosts,) * 2
    total = scipy.sparse.csr_array(size)
    for demand, amount in parts:
        source, target, weight = demand.pairs()
        total = total + scipy.sparse.csr_array((np.asarray(weight) * amount, (source, target)), size)
    return table_traffic(kind, topology, total, hose=False)
