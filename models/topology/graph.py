# SPDX-License-Identifier: Apache-2.0
"""The interconnect graph: switches, directed channels between them, and hosts at switches."""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy

from flitlab.models.arrays import Bools, Floats, Ints, to_floats, to_integers
from flitlab.models.hashing import content_hash
from flitlab.models.html import facts, interval
from flitlab.models.mappings import Fields, Notes
from flitlab.models.registry import SpecError, warn
from flitlab.models.topology.attributes import (
    ejection_switches,
    host_delays,
    labels_of,
    numbers_of,
    numeric_columns,
    unread_attributes,
    unread_warning,
)
from flitlab.models.topology.limits import MAX_SIZE
from flitlab.models.topology.pairing import opposite_pairs, pairs_warning, unpaired_warning

NAMES = ("labels", "ids", "nodes", "names")
"""Notes with names of switches and hosts; see :mod:`flitlab.models.topology.names`."""

if TYPE_CHECKING:  # only conversions need it, and it takes long to import
    import networkx as nx


HOPS, DELAY = "hops", "delay"
"""Weights of channels for shortest paths: 1 each, or the latency that a file states, delay + 1."""


@dataclass(frozen=True)
class Grid:
    """Coordinates of the switches of a grid-like topology (mesh, torus, hypercube).

    dims: extent of each dimension. wrap: whether dimensions close into rings.
    coordinates: int64 [switches, dimensions].
    """

    dims: tuple[int, ...]
    wrap: bool
    coordinates: Ints


@dataclass(frozen=True, eq=False)
class Topology:
    """Directed channels between switches, and the hosts attached to them.

    Channels are sorted by (src, dst); a bi-directional link is two channels that name each other in ``reverse``, a
    uni-directional one has reverse -1; parallel channels are allowed, self-loops are not. Hosts are numbered switch by
    switch; each has an injection and an ejection channel of its own, of capacity ``host_capacity``. In a
    uni-directional multistage network they are at different switches, and only hosts need to reach each other.

    src, dst: int64 [channels]. capacity: float64 [channels], relative to 1 = one flit per tick. delay: int64
    [channels], ticks added to the link delay of the switching model. reverse: int64 [channels]. host_switch: int64
    [hosts], non-decreasing, the switch of each injection channel. ejection: int64 [hosts], the switch of each ejection
    channel; None where it is that of the injection channel. host_delay: int64 [hosts], ticks added to the delays of
    each host's injection and ejection channel; None where no host has such a delay. default_weight: ``HOPS`` or
    ``DELAY``, the default weight of shortest paths. columns: float64 [channels] by name, further attributes of channels
    in a file.
    """

    kind: str
    switches: int
    src: Ints
    dst: Ints
    capacity: Floats
    delay: Ints
    reverse: Ints
    host_switch: Ints
    host_capacity: float = 1.0
    hosts_stated: bool = False
    """Whether the number of hosts at each switch is specified, even if it is 0; if not, a configuration places
    hosts.
    """
    host_delay: Ints | None = None
    ejection: Ints | None = None
    default_weight: str = HOPS
    columns: dict[str, Floats] = field(default_factory=dict)
    subnets: int = 1
    """Copies that the network consists of, see :mod:`flitlab.models.subnets`."""
    grid: Grid | None = None
    notes: Notes = field(default_factory=dict)
    """Choices and results of the construction (JSON-able), for the manifest and ``simrun topology``."""

    @classmethod
    def from_arcs(
        cls,
        kind: str,
        switches: int,
        arcs: npt.ArrayLike,
        *,
        capacity: npt.ArrayLike = 1.0,
        delay: npt.ArrayLike = 0,
        **more: object,
    ) -> "Topology":
        """Build a topology of uni-directional channels; self-loops are dropped.

        Parameters
        ----------
        kind: name of the family.
        switches: number of switches.
        arcs: integers [channels, 2], (src, dst).
        capacity, delay: a number, or one for each channel.
        more: further fields of :class:`Topology`.

        Raises
        ------
        SpecError: an array has another form, or a value is out of range.
        """
        arcs = _pairs("arcs", arcs)
        reverse = np.full(len(arcs), -1, np.int64)
        return cls._canonical(kind, switches, arcs, reverse, capacity, delay, more)

    @classmethod
    def from_links(
        cls,
        kind: str,
        switches: int,
        links: npt.ArrayLike,
        *,
        capacity: npt.ArrayLike = 1.0,
        delay: npt.ArrayLike = 0,
        **more: Any,
    ) -> "Topology":
        """Build a topology of bi-directional links: two channels, each the reverse of the other, for every pair (u, v).

        Parameters
        ----------
        kind, switches, more: as in :meth:`from_arcs`.
        links: integers [links, 2].
        capacity, delay: a number, or one for each link.

        Raises
        ------
        SpecError: as :meth:`from_arcs`.
        """
        links = _pairs("links", links)
        count = len(links)
        arcs = np.concatenate([links, links[:, ::-1]])
        reverse = np.concatenate([np.arange(count) + count, np.arange(count)])
        capacity = np.tile(to_floats("capacity", capacity, count), 2)
        delay = np.tile(to_integers("delay", delay, count), 2)
        more["columns"] = {name: np.tile(values, 2) for name, values in more.get("columns", {}).items()}
        return cls._canonical(kind, switches, arcs, reverse, capacity, delay, more)

    @classmethod
    def from_channels(
        cls, kind: str, switches: int, arcs: npt.ArrayLike, reverse: npt.ArrayLike, *,
        capacity: npt.ArrayLike = 1.0, delay: npt.ArrayLike = 0, **more: object,
    ) -> "Topology":  # fmt: skip
        """Build a topology of channels with their reverses.

        Parameters
        ----------
        kind, switches, capacity, delay, more: as in :meth:`from_arcs`.
        arcs: integers [channels, 2], (src, dst).
        reverse: integers [channels], the index of each channel's reverse in ``arcs``, or -1.

        Raises
        ------
        SpecError: as :meth:`from_arcs`.
        """
        arcs = _pairs("arcs", arcs)
        return cls._canonical(kind, switches, arcs, to_integers("reverse", reverse, len(arcs)), capacity, delay, more)

    @classmethod
    def _canonical(
        cls,
        kind: str,
        switches: int,
        arcs: Ints,
        reverse: Ints,
        capacity: npt.ArrayLike,
        delay: npt.ArrayLike,
        more: Fields,
    ) -> "Topology":
        count = len(arcs)
        capacity = to_floats("capacity", capacity, count)
        delay = to_integers("delay", delay, count)
        if not ((capacity > 0) & np.isfinite(capacity)).all():
            raise SpecError("capacity must hold positive and finite numbers", "capacity")
        switches = int(to_integers("switches", switches, 1)[0])
        if count and (arcs.min() < 0 or arcs.max() >= switches):
            raise SpecError(f"channel ends must lie in 0..{switches - 1}", "arcs")
        keep = np.flatnonzero(arcs[:, 0] != arcs[:, 1])
        order = keep[np.lexsort((arcs[keep, 1], arcs[keep, 0]))]
        new_index = np.full(count + 1, -1, np.int64)  # place[-1] stays -1: no reverse
        new_index[order] = np.arange(len(order))
        return cls(
            kind=kind,
            switches=switches,
            src=arcs[order, 0].copy(),
            dst=arcs[order, 1].copy(),
            capacity=capacity[order],
            delay=delay[order],
            reverse=new_index[reverse[order]],
            host_switch=more.pop("host_switch", np.zeros(0, np.int64)),
            columns={name: np.asarray(values, float)[order] for name, values in more.pop("columns", {}).items()},
            **more,
        )

    def with_hosts(
        self, per_switch: npt.ArrayLike, host_capacity: float = 1.0, host_delay: npt.ArrayLike | None = None,
        ejection: npt.ArrayLike | None = None,
    ) -> "Topology":  # fmt: skip
        """Return a copy of the graph with hosts.

        Parameters
        ----------
        per_switch: a number, or one for each switch.
        host_capacity: flits per tick of injection and ejection channels.
        host_delay: int64 [hosts], ticks, see the class; None where all are 0.
        ejection: int64 [hosts], the switch at which each host ejects; None where it injects there, too.

        Raises
        ------
        SpecError: a value is out of range, or there are too many hosts.
        """
        counts = to_integers("per_switch", per_switch, self.switches)
        if (counts < 0).any() or (total := sum(counts.tolist())) > MAX_SIZE:
            raise SpecError(f"per_switch must hold numbers from 0 that add up to {MAX_SIZE:,} at most", "per_switch")
        hosts = np.repeat(np.arange(self.switches), counts)
        delay = None if host_delay is None else to_integers("host_delay", host_delay, total)
        delay = delay if delay is not None and delay.any() else None
        eject = None if ejection is None else to_integers("ejection", ejection, total)
        if eject is not None and ((eject < 0) | (eject >= self.switches)).any():
            raise SpecError(f"ejection must hold switches, from 0 to {self.switches - 1}", "ejection")
        eject = eject if eject is not None and (eject != hosts).any() else None
        rate = float(to_floats("host_capacity", host_capacity, 1)[0])
        if not rate > 0:
            raise SpecError(f"host_capacity is {rate}: it must be positive", "host_capacity")
        return replace(self, host_switch=hosts, hosts_stated=True, host_capacity=rate, host_delay=delay, ejection=eject)

    @property
    def channels(self) -> int:
        """Number of directed channels between switches."""
        return len(self.src)

    @property
    def hosts(self) -> int:
        """Number of hosts, each of which has an injection and an ejection channel; one in every subnet counts."""
        return len(self.host_switch)

    @property
    def physical_hosts(self) -> int:
        """Number of hosts, each of which has a channel to and from every subnet."""
        return self.hosts // self.subnets

    @property
    def is_multistage(self) -> bool:
        """Whether hosts inject at one switch and eject at another."""
        return self.ejection is not None

    @property
    def ejection_switch(self) -> Ints:
        """int64 [hosts]: the switch of each host's ejection channel; ``host_switch`` itself where they are the same."""
        return self.host_switch if self.ejection is None else self.ejection

    @property
    def src_switches(self) -> Ints:
        """The switches at which hosts inject, int64, ascending; all switches where there are no hosts."""
        return np.flatnonzero(self.host_count) if self.hosts else np.arange(self.switches)

    @property
    def dst_switches(self) -> Ints:
        """The switches at which hosts eject, int64, ascending; all switches where there are no hosts."""
        return np.flatnonzero(self.ejection_count) if self.hosts else np.arange(self.switches)

    def require_one_switch(self, subject: str, key: str | None = None) -> None:
        """Raise ``SpecError`` where hosts inject at one switch and eject at another.

        Parameters
        ----------
        subject: what needs hosts with one switch, for the message.
        key: the configuration key that names it.
        """
        if self.is_multistage:
            problem = f"{subject}, but hosts of this topology inject at one switch and eject at another"
            raise SpecError(problem, key)

    @cached_property
    def access_delay(self) -> Ints:
        """``host_delay``, int64 [hosts], 0 for all hosts where it is None."""
        return np.zeros(self.hosts, np.int64) if self.host_delay is None else self.host_delay

    def columns_of(self, channels: Ints | Bools) -> dict[str, Floats]:
        """Return the ``columns`` of some channels, in their order.

        Parameters
        ----------
        channels: int64 [n], channels, or bool [channels].
        """
        return {name: values[channels] for name, values in self.columns.items()}

    @property
    def has_delays(self) -> bool:
        """Whether a channel, between switches or of a host, has a delay of its own."""
        return bool(self.delay.any() or self.access_delay.any())

    @property
    def longest_delay(self) -> int:
        """Longest delay in ticks that a channel between switches or of a host has of its own."""
        return int(max(self.delay.max(initial=0), self.access_delay.max(initial=0)))

    @property
    def directed(self) -> bool:
        """Whether a channel has no reverse."""
        return bool((self.reverse < 0).any())

    @cached_property
    def out_start(self) -> Ints:
        """int64 [switches + 1]: the channels out of switch v are out_start[v]:out_start[v + 1]."""
        return np.searchsorted(self.src, np.arange(self.switches + 1))

    @cached_property
    def in_channels(self) -> Ints:
        """int64 [channels]: channel indices sorted by (dst, index)."""
        return np.argsort(self.dst, kind="stable")

    @cached_property
    def in_start(self) -> Ints:
        """int64 [switches + 1]: the channels into v are in_channels[in_start[v]:in_start[v + 1]]."""
        return np.searchsorted(self.dst[self.in_channels], np.arange(self.switches + 1))

    @cached_property
    def host_start(self) -> Ints:
        """int64 [switches + 1]: the hosts of switch v are host_start[v]:host_start[v + 1]."""
        return np.searchsorted(self.host_switch, np.arange(self.switches + 1))

    @property
    def out_degree(self) -> Ints:
        """int64 [switches]: channels out of each switch."""
        return np.diff(self.out_start)

    @property
    def in_degree(self) -> Ints:
        """int64 [switches]: channels into each switch."""
        return np.diff(self.in_start)

    @property
    def host_count(self) -> Ints:
        """int64 [switches]: hosts that inject at each switch."""
        return np.diff(self.host_start)

    @property
    def ejection_count(self) -> Ints:
        """int64 [switches]: hosts that eject at each switch."""
        return np.bincount(self.ejection_switch, minlength=self.switches)

    def unreachable_pair(self) -> tuple[int, int] | None:
        """Return two switches (u, v) without a path from u to v, at which hosts inject and eject if these are different
        switches; None if there are none: the topology is strongly connected, or serves all pairs of hosts.
        """
        if self.is_multistage:
            return self._unreachable_hosts()
        ones, shape = np.ones(self.channels), (self.switches, self.switches)
        for flip in (False,) if (self.reverse >= 0).all() else (False, True):
            neighbours = (self.src[self.in_channels], self.in_start) if flip else (self.dst, self.out_start)
            matrix = scipy.sparse.csr_array((ones, *neighbours), shape=shape)
            reached = scipy.sparse.csgraph.breadth_first_order(matrix, 0, return_predecessors=False)
            if len(reached) < self.switches:
                other = int(np.setdiff1d(np.arange(self.switches), reached)[0])
                return (other, 0) if flip else (0, other)
        return None

    def _unreachable_hosts(self) -> tuple[int, int] | None:
        """Return the first switches (u, v) without a path from hosts at u to hosts at v; None if there are none."""
        matrix = scipy.sparse.csr_array((np.ones(self.channels), (self.src, self.dst)), shape=(self.switches,) * 2)
        for u in self.src_switches.tolist():
            reached = scipy.sparse.csgraph.breadth_first_order(matrix, u, return_predecessors=False)
            if len(missing := np.setdiff1d(self.dst_switches, reached)):
                return u, int(missing[0])
        return None

    def pair_directions(self) -> "Topology":
        """Return a copy in which opposite uni-directional channels form links.

        The two channels of a link may differ in capacity and delay; equal ones are paired first. Channels without an
        opposite one stay uni-directional; existing links stay.
        """
        first, second = opposite_pairs(self.src, self.dst, self.capacity, self.delay, self.reverse)
        reverse = self.reverse.copy()
        reverse[first], reverse[second] = second, first
        return replace(self, reverse=reverse)

    @property
    def paired_count(self) -> tuple[int, int]:
        """Number of uni-directional channels that :meth:`pair_directions` would pair, and of all uni-directional
        channels.
        """
        one, _ = opposite_pairs(self.src, self.dst, self.capacity, self.delay, self.reverse)
        return 2 * len(one), int((self.reverse < 0).sum())

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on, including the names of switches and hosts, which tables
        contain.
        """
        names = [self.notes[key] for key in NAMES if key in self.notes]
        return content_hash(
            self.switches, self.src, self.dst, self.capacity, self.delay, self.reverse, self.host_switch,
            repr(self.host_capacity), *([] if self.host_delay is None else [self.host_delay]),
            *([] if self.ejection is None else ["ejection", self.ejection]),
            *([] if self.default_weight == HOPS else [self.default_weight]),
            *([] if self.subnets == 1 else ["subnets", self.subnets]),
            *(part for name in sorted(self.columns) for part in (name, self.columns[name])),
            *([json.dumps(names)] if names else []),
        )  # fmt: skip

    @cached_property
    def edge_hash(self) -> str:
        """Hash of the edge list alone."""
        return content_hash(self.switches, self.src, self.dst)

    def to_networkx(self) -> "nx.MultiDiGraph":
        """Convert to a MultiDiGraph with one edge per channel (key: channel; attributes: capacity, delay, reverse, the
        columns).

        Nodes are switch numbers; their attributes are ``hosts``, ``label`` where there is one, and the lists
        ``host_delay`` where hosts have delays, and ``ejection``, the switches where hosts eject, if not there.
        """
        import networkx as nx

        graph = nx.MultiDiGraph(kind=self.kind)
        labels = self.notes.get("labels") or [None] * self.switches
        for v in range(self.switches):
            label = {} if labels[v] is None else {"label": labels[v]}
            graph.add_node(v, hosts=int(self.host_count[v]), **label)
            if self.host_delay is not None:
                graph.nodes[v]["host_delay"] = self.host_delay[slice(*self.host_start[v : v + 2])].tolist()
            if self.ejection is not None:
                graph.nodes[v]["ejection"] = self.ejection[slice(*self.host_start[v : v + 2])].tolist()
        for c in range(self.channels):
            graph.add_edge(
                int(self.src[c]), int(self.dst[c]), key=c, capacity=float(self.capacity[c]),
                delay=int(self.delay[c]), reverse=int(self.reverse[c]),
            )  # fmt: skip
            graph.edges[int(self.src[c]), int(self.dst[c]), c].update(
                {name: float(values[c]) for name, values in self.columns.items()}
            )
        return graph

    @classmethod
    def from_networkx(
        cls, graph: "nx.Graph", kind: str = "networkx", pair_directions: bool | None = None
    ) -> "Topology":
        """Convert a networkx graph; nodes are numbered in their order; attributes capacity, delay and hosts are read.

        Undirected edges become two channels each; in a directed graph with ``reverse``, pairs are kept. Where no node
        has ``hosts``, hosts are not stated; ``host_delay`` of a node lists the delays of its hosts, ``ejection`` the
        nodes where they eject. Other numbers that every edge has become ``columns``. ``notes`` keep the labels of nodes
        (their attribute ``label`` or ``name``, else the nodes themselves) unless these are 0, 1, 2, ...

        Parameters
        ----------
        graph: directed or not, with or without parallel edges; self-loops are dropped, with a warning.
        kind: name of the family.
        pair_directions: whether opposite edges of a directed graph are links (see :meth:`pair_directions`). None: they
            are not, and a warning is issued where they probably are.

        Raises
        ------
        ValueError: the graph has no nodes, or an attribute is not a valid number.
        """
        if not len(graph):
            raise ValueError("a graph without nodes is no network")
        index = {node: i for i, node in enumerate(graph.nodes)}
        edges = [(index[u], index[v], data) for u, v, data in graph.edges(data=True)]
        pairs = [(u, v) for u, v, _ in edges]
        of_edges = [(f"edge {u!r}-{v!r}", data) for u, v, data in graph.edges(data=True)]
        of_nodes = [(f"node {node!r}", data) for node, data in graph.nodes(data=True)]
        capacity = numbers_of(of_edges, "capacity", 1.0, float)
        delay = numbers_of(of_edges, "delay", 0, int)
        columns = numeric_columns([data for _, _, data in edges])
        if graph.is_directed():
            topology = cls.from_arcs(kind, len(index), pairs, capacity=capacity, delay=delay, columns=columns)
            if edges and all("reverse" in data for _, _, data in edges):
                # written by to_networkx: channel numbers are those of the canonical order
                keys = sorted((index[u], index[v], key) for u, v, key in graph.edges(keys=True))
                rank = {key: i for i, (_, _, key) in enumerate(keys)}
                reverse = np.full(len(edges), -1, np.int64)
                for _, _, key, data in graph.edges(keys=True, data=True):
                    reverse[rank[key]] = rank.get(data["reverse"], -1)
                topology = replace(topology, reverse=reverse)
        else:
            topology = cls.from_links(kind, len(index), pairs, capacity=capacity, delay=delay, columns=columns)
        if pair_directions:
            topology = topology.pair_directions()
        topology = replace(topology, notes=_names_of(graph))
        _warn_of_unread(graph, topology, pair_directions)
        if not any("hosts" in data for _, data in of_nodes):
            return topology
        counts = numbers_of(of_nodes, "hosts", 0, int)
        delays = host_delays(of_nodes, counts)
        return topology.with_hosts(counts, host_delay=delays, ejection=ejection_switches(of_nodes, counts, index))

    def _repr_html_(self) -> str:
        """Return a table of properties, for notebooks."""
        degrees, capacities = np.unique(self.out_degree), np.unique(self.capacity)
        about = {
            "switches": self.switches, "channels": self.channels, "hosts": self.hosts,
            "directed": "yes" if self.directed else "no",
            "channels out of a switch": interval(*degrees[[0, -1]]) if len(degrees) else None,
            "capacity of a channel": interval(*capacities[[0, -1]]) if len(capacities) else None,
            "capacity of a host": f"{self.host_capacity:g}",
        }  # fmt: skip
        return facts(f"Topology {self.kind}", about)


def _pairs(name: str, value: npt.ArrayLike) -> Ints:
    """Convert to pairs of switches, int64 [pairs, 2]. Raises ``SpecError``."""
    pairs = to_integers(name, value)
    if pairs.size % 2:
        raise SpecError(f"{name} must be pairs of switches, not of shape {pairs.shape}", name)
    return pairs.reshape(-1, 2)


def _names_of(graph: "nx.Graph") -> Notes:
    """Return the notes with the names of a graph's nodes."""
    numbers, ids = [str(i) for i in range(len(graph))], [str(node) for node in graph.nodes]
    data = dict(zip(ids, (data for _, data in graph.nodes(data=True)), strict=True))
    label_of, warning = labels_of(data if len(data) == len(ids) else {})
    labels = [label_of.get(key, key) for key in ids]
    if warning:
        warn(warning)
    if labels == numbers:
        return {}
    return {"labels": labels} | ({"ids": ids} if ids not in (numbers, labels) else {})


def _warn_of_unread(graph: "nx.Graph", topology: Topology, pair_directions: bool | None) -> None:
    """Warn of dropped loops, unread attributes, and channels that are probably links."""
    import networkx as nx

    if loops := nx.number_of_selfloops(graph):
        warn(f"{loops} self-loops are dropped")
    edges, nodes = [data for *_, data in graph.edges(data=True)], [data for _, data in graph.nodes(data=True)]
    for kind in ("capacity", "delay", "hosts"):
        if warning := unread_warning(unread_attributes(nodes if kind == "hosts" else edges, kind, kind), kind):
            warn(warning)
    paired, single = topology.paired_count
    if pair_directions is None:
        warning = pairs_warning(paired, single, "Topology.from_networkx(graph, pair_directions=True)")
    else:
        warning = unpaired_warning(single) if pair_directions else ""
    if warning:
        warn(warning)
