# SPDX-License-Identifier: Apache-2.0
"""Traffic as a demand matrix T, and how destinations are drawn from its rows."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from flitlab.models.arrays import Floats, Ints, sums
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Notes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import BurstRates, Recorded, Source


class _DestinationRule(NamedTuple):
    """How the destination of a packet is drawn, given its source."""

    UNIFORM: int = 0  # every other host
    UNIFORM_SELF: int = 1  # every host
    FIXED: int = 2  # one destination per host
    TABLE: int = 3  # weighted rows of the demand matrix


DestinationRule = _DestinationRule()

WORD = 1 << 63
"""Draws are uniform integers below this."""


def word_thresholds(cumulative: np.ndarray) -> np.ndarray:
    """Convert cumulative shares to thresholds of 63-bit draws: a draw below a threshold belongs to its entry.

    Thresholds are multiples of 2**-53 of the range, so that products of doubles and a power of two are exact. Entries
    with a smaller share are never drawn.

    Parameters
    ----------
    cumulative: float64 [entries], ascending, the last of them 1.

    Returns
    -------
    int64 [entries].
    """
    steps = np.minimum(np.floor(cumulative * 2.0**53), 2.0**53 - 1).astype(np.int64)
    thresholds = steps << 10
    thresholds[-1] = WORD - 1
    return thresholds


@dataclass(frozen=True, eq=False)
class TrafficClass:
    """Packets of one class: their demand, their lengths, and how hosts and switches treat them.

    demand: its matrix C; at load x the class offers (``share`` * x + ``load``) * C. flits, shares: packet lengths, and
    the share of packets of each. priority: the greater one goes first. vcs: the first VC that its packets may take, and
    one past the last; None: all. request: for a class of replies, the number of the class that it replies to; its
    demand is then that of the replies. delay: ticks from the delivery of a request to the creation of its reply.
    subnet: of its packets; None: each draws one. queue: of a class of replies, how many of them a host may
    owe; None: any number. arrivals, burst: of its process, see :class:`~flitlab.models.traffic.source.Source`; None: as
    those of the scenario. source_queue: name of the source queue at each host, which classes of that name share; None:
    one of its own.
    """

    name: str
    demand: "Traffic"
    share: float
    load: float = 0.0
    flits: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)
    priority: int = 0
    vcs: tuple[int, int] | None = None
    request: int | None = None
    delay: int = 1
    subnet: int | None = None
    queue: int | None = None
    arrivals: str | None = None
    burst: float | None = None
    source_queue: str | None = None

    @property
    def mean_flits(self) -> float:
        """Mean packet length in flits."""
        return float(np.dot(self.flits, self.shares) / sum(self.shares))

    def process(self, source: Source) -> tuple[str, float | BurstRates]:
        """Return the arrivals and the burst of the class; source: those of the scenario."""
        return self.arrivals or source.arrivals, source.burst if self.burst is None else self.burst

    def offered(self, load: float) -> float:
        """Return the load that the class offers at a load of the whole traffic."""
        return self.share * load + self.load

    @property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        reply: list[object] = [] if self.request is None else [self.request, self.delay]
        reply += [] if self.subnet is None else ["subnet", self.subnet]
        reply += [] if self.queue is None else ["queue", self.queue]
        reply += [] if self.arrivals is None and self.burst is None else ["arrivals", self.arrivals, self.burst]
        reply += [] if self.source_queue is None else ["source_queue", self.source_queue]
        keys = (self.share, self.load, self.flits, self.shares, self.priority, self.vcs, *reply)
        return content_hash(self.demand.content_hash, *keys)


@dataclass(frozen=True, eq=False)
class Traffic:
    """A demand matrix T [hosts, hosts] whose largest row or column sum is 1 (hose model).

    At load x the pair (i, j) offers x * T[i, j] flits per tick (of a unit-capacity host channel).

    law: UNIFORM (every other host), UNIFORM_SELF (every host), FIXED (one destination per host) or TABLE (weighted
    rows). rate: float64 [hosts], the row sums of T. fixed: int64 [hosts], for FIXED: the destination, -1 where a host
    sends nothing. start, column, weight: CSR rows of T for TABLE; int64 [hosts + 1], int64 [entries], float64
    [entries]. alternates: further matrices of the same description (a longest matching is not unique); a ceiling is the
    least over all of them, a simulation uses this one. background: a demand B that does not scale: at load x, B + x T
    is offered. All other fields describe T alone, so code that reads them calls :meth:`at` first. recorded: the
    messages of a trace, whose sum is T. classes: the classes of packets, whose sum is the whole traffic; empty where
    all packets are of one class.
    """

    kind: str
    topology: Topology
    law: int
    rate: Floats
    fixed: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    start: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    column: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    notes: Notes = field(default_factory=dict)
    alternates: tuple["Traffic", ...] = ()
    background: "Traffic | None" = None
    recorded: Recorded | None = None
    classes: tuple[TrafficClass, ...] = ()

    def sent(self, load: float) -> Floats:
        """Return the flits per tick that each host creates at a load, float64 [hosts], including the background."""
        return load * self.rate + (0.0 if self.background is None else self.background.rate)

    def received(self, load: float) -> Floats:
        """Return the flits per tick that are created for each host at a load, float64 [hosts], including the
        background.
        """
        return load * self.column_sums + (0.0 if self.background is None else self.background.column_sums)

    def at(self, load: float) -> "tuple[Traffic, float]":
        """Return traffic without a background that offers the same as this one at ``load``, and the load at which it
        does.

        Without a background these are this traffic and ``load``; with one, B + load * T and 1.
        """
        if self.background is None:
            return self, load
        size = (self.topology.hosts,) * 2
        parts = [(self.pairs(), load), (self.background.pairs(), 1.0)]
        fixed, growing = (scipy.sparse.csr_array((amount * x, (i, j)), size) for (i, j, amount), x in reversed(parts))
        total = scipy.sparse.csr_array(fixed + growing)
        total.eliminate_zeros()
        total.sort_indices()
        start, column = total.indptr.astype(np.int64), total.indices.astype(np.int64)
        rate = sums(np.repeat(np.arange(size[0]), np.diff(start)), total.data, size[0])
        classes = tuple(replace(one, share=one.offered(load), load=0.0) for one in self.classes)
        return Traffic(
            self.kind, self.topology, DestinationRule.TABLE, rate, start=start, column=column, weight=total.data,
            classes=classes,
        ), 1.0  # fmt: skip

    def lengths(self, load: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Return the packet lengths of all classes at a load, ascending, and the packets per tick of each."""
        rates: dict[int, float] = {}
        for one in self.classes:
            packets = one.offered(load) * float(one.demand.rate.sum()) / one.mean_flits
            for flits, share in zip(one.flits, one.shares, strict=True):
                rates[flits] = rates.get(flits, 0.0) + packets * share / sum(one.shares)
        return tuple(sorted(rates)), tuple(rates[flits] for flits in sorted(rates))

    @property
    def mean_rate(self) -> float:
        """Load that a host creates at load 1, on average over hosts; without the background."""
        return float(self.rate.sum() / self.topology.physical_hosts)

    @cached_property
    def cumulative(self) -> Ints:
        """Thresholds of 63-bit draws for TABLE, int64 [entries]: entry k of row i is drawn below its threshold."""
        thresholds = np.zeros(len(self.column), np.int64)
        for i in range(len(self.start) - 1):
            row = slice(self.start[i], self.start[i + 1])
            share = np.cumsum(self.weight[row])
            if len(share):
                thresholds[row] = word_thresholds(share / share[-1])
        return thresholds

    @cached_property
    def column_sums(self) -> Floats:
        """Load that each host receives at load 1, float64 [hosts]."""
        hosts = self.topology.hosts
        if self.law == DestinationRule.UNIFORM:
            received: Floats = (self.rate.sum() - self.rate) / (hosts - 1)
            return received
        if self.law == DestinationRule.UNIFORM_SELF:
            return np.full(hosts, self.rate.sum() / hosts)
        _, target, amount = self.pairs()
        return sums(target, amount, hosts)

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the non-zero entries of T as (source host, destination host, amount); hosts**2 entries if uniform."""
        hosts = self.topology.hosts
        if self.law == DestinationRule.FIXED:
            source = np.flatnonzero(self.fixed >= 0)
            return source, self.fixed[source], self.rate[source]
        if self.law == DestinationRule.TABLE:
            source = np.repeat(np.arange(hosts), np.diff(self.start))
            return source, self.column, self.weight
        source, target = np.divmod(np.arange(hosts * hosts), hosts)
        amount = self.rate[source] / (hosts if self.law == DestinationRule.UNIFORM_SELF else hosts - 1)
        keep = slice(None) if self.law == DestinationRule.UNIFORM_SELF else source != target
        return source[keep], target[keep], amount[keep]

    @cached_property
    def local_rate(self) -> float:
        """The most that a host sends to, or receives from, hosts of its own switch at load 1, flits per tick."""
        hosts, host_switch, ejection = self.topology.hosts, self.topology.host_switch, self.topology.ejection_switch
        if self.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            others = hosts - (self.law == DestinationRule.UNIFORM)
            itself = (host_switch == ejection) & (self.law == DestinationRule.UNIFORM)
            sent = self.rate * (self.topology.ejection_count[host_switch] - itself) / others
            at_switch = np.bincount(host_switch, self.rate, self.topology.switches)[ejection]
            received = (at_switch - self.rate * itself) / others
        else:
            source, target, amount = self.pairs()
            local = host_switch[source] == ejection[target]
            sent, received = (sums(ends[local], amount[local], hosts) for ends in (source, target))
        return float(max(sent.max(initial=0.0), received.max(initial=0.0)))

    def switch_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the positive entries of T between different switches, summed over their hosts.

        Returns (source switch, destination switch, amount), sorted by destination and source. Sparse demands do not
        need a full matrix.
        """
        host_switch, ejection, n = self.topology.host_switch, self.topology.ejection_switch, self.topology.switches
        if self.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            share = np.bincount(host_switch, self.rate, n) / (
                self.topology.hosts - (self.law == DestinationRule.UNIFORM)
            )
            matrix = np.outer(self.topology.ejection_count, share)
            if self.topology.is_multistage and self.law == DestinationRule.UNIFORM:
                matrix -= _demand_of_itself(self).T / (self.topology.hosts - 1)
            np.fill_diagonal(matrix, 0)
            target, source = np.nonzero(matrix)
            return source, target, matrix[target, source]
        source, target, amount = self.pairs()
        return summed_pairs(n, host_switch[source], ejection[target], amount)

    @cached_property
    def switch_demand(self) -> Floats:
        """T summed over the hosts of each switch, float64 [switches, switches], including the diagonal."""
        topology = self.topology
        n, host_switch, ejection = topology.switches, topology.host_switch, topology.ejection_switch
        if self.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            share = np.bincount(host_switch, self.rate, n)
            count = topology.ejection_count.astype(float)
            if self.law == DestinationRule.UNIFORM_SELF:
                return np.outer(share, count) / topology.hosts
            own = np.diag(share) if not topology.is_multistage else _demand_of_itself(self)
            return (np.outer(share, count) - own) / (topology.hosts - 1)
        source, target, amount = self.pairs()
        flat = sums(host_switch[source] * n + ejection[target], amount, n * n)
        return flat.reshape(n, n)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        own = (self.law, self.rate, self.fixed, self.start, self.column, self.cumulative)
        alternates = [alternate.content_hash for alternate in self.alternates]
        # the label distinguishes a background from an alternate
        fixed = [] if self.background is None else ["background", self.background.content_hash]
        trace = [] if self.recorded is None else ["recorded", self.recorded.content_hash]
        classes = ["classes", *(one.content_hash for one in self.classes)] if self.classes else []
        return content_hash(*own, *alternates, *fixed, *trace, *classes)


def _demand_of_itself(traffic: Traffic) -> Floats:
    """What hosts would send themselves if they sent each host their whole rate, float64 [switches, switches]."""
    topology = traffic.topology
    n = topology.switches
    pair = topology.host_switch * n + topology.ejection_switch
    return sums(pair, traffic.rate, n * n).reshape(n, n)


def summed_pairs(nodes: int, source: Ints, target: Ints, amount: Floats) -> tuple[Ints, Ints, Floats]:
    """Sum amounts by pair of different nodes.

    Parameters
    ----------
    nodes: number of nodes.
    source, target: int64 [n].
    amount: float64 [n], 0 or more.

    Returns
    -------
    (source, target, sum) of the positive sums, sorted by target and source.
    """
    pair, entry = np.unique(target * nodes + source, return_inverse=True)
    total = np.bincount(entry, amount, len(pair))
    target, source = np.divmod(pair, nodes)
    keep = (source != target) & (total > 0)
    return source[keep], target[keep], total[keep]
