# SPDX-License-Identifier: Apache-2.0
"""Verification of saved cuts, parts and trees of a collective, in integers.

No code is shared with the search: capacities and what crosses are computed independently.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import isinf, lcm
from typing import TYPE_CHECKING, cast

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.collective.collective import ROOTED, Collective
from flitlab.fluid.saved import is_partition
from flitlab.fluid.verify_flow import FlowProof, flow_arrays
from flitlab.models.arrays import Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic

if TYPE_CHECKING:  # these import compilers, which reading a certificate does not need
    from flitlab.fluid.collective.collective import Evidence

FINEST = 2**20
"""Largest denominator with which a capacity is read as a fraction."""

ROUNDING = Fraction(1, 2**50)
"""Relative difference that is allowed between a capacity and its fraction: some ulps of a double."""

LEAVING = {
    "all_gather": "inside", "gather": "inside", "reduce_scatter": "outside", "scatter": "outside",
    "broadcast": "one", "reduce": "one", "all_reduce": "one",
}  # fmt: skip
"""Collective -> data that must leave a side: units of the ranks inside, of those outside, or one vector."""

ROOT = {"broadcast": True, "scatter": True, "reduce": False, "gather": False}
"""Collective -> whether its root is inside of a side that data must leave."""

MAX_AMOUNTS = 8
"""Amounts that a statement lists."""


@dataclass(frozen=True, eq=False)
class CollectiveProof(FlowProof):
    """Proofs of the least time of a collective, and of one that is possible.

    collective, ranks: its kind and who takes part; able: abilities of the switches, of ``multicast`` and ``reduce``;
    units: int [ranks], root: int [1]. bound: the time as a fraction; part: int [switches], of_rank: int [ranks], the
    sets that prove it (:class:`~flitlab.fluid.collective.collective.Evidence`); of an all-to-all prices and a flow in
    their place. Trees, if any: reached, their time as a fraction; tree: int [3 * trees], of each 0 (to its root) or 1
    (from it), the root, and its number of parts; first: int [trees + 1], their paths; start: int [paths + 1], the
    vertices of each path, in ``vertex``.
    """

    collective: str
    ranks: str
    able: str
    bound: str
    units: Ints
    root: Ints
    part: Ints
    of_rank: Ints
    reached: str = field(default_factory=str)
    tree: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    vertex: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    of_traffic = False
    with_background = True

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> Fields:
        """The sets that prove the lower end of a row and the trees of the upper one; of an all-to-all prices and a
        flow.
        """
        proof, none = cast("Evidence", row.flow), np.zeros(0)
        collective, z = proof.collective, proof.prices
        flow = flow_arrays(instance if proof.instance is None else proof.instance, proof.flow)
        return {
            "lower": float(row.lower) if proof.bound or z is not None else np.nan,
            "upper": np.nan if proof.flow is None and proof.reached is None else float(row.upper),
            "network": none if z is None else z.network, "injection": none if z is None else z.injection,
            "ejection": none if z is None else z.ejection, **flow, **_tree_arrays(proof), "collective": collective.kind,
            "ranks": collective.ranks, "able": collective.able,
            "bound": "" if proof.bound is None else str(proof.bound), "units": proof.amount,
            "root": np.array([collective.root]), "part": proof.part, "of_rank": proof.of_rank,
            "reached": "" if proof.reached is None else str(proof.reached),
        }  # fmt: skip

    def check_form(self) -> None:
        """Raise ``BadCertificate`` unless the arrays of the trees or of the flow fit each other."""
        if not (len(self.tree) or len(self.vertex)):
            super().check_form()
            return
        fit = not len(self.flow) and len(self.tree) % 3 == 0
        fit = fit and is_partition(self.first, len(self.tree) // 3, len(self.start) - 1)
        if not fit or not is_partition(self.start, len(self.start) - 1, len(self.vertex)):
            self.reject("the parts of trees do not fit each other")

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """The time that no algorithm is faster than, and the one in which trees or a flow deliver all data."""
        topology = instance.topology
        self._check_subject(topology, [collective for collective in subjects if isinstance(collective, Collective)])
        if self.collective != "all_to_all":
            upper = float(tree_time(topology, self)) if len(self.tree) else np.nan
            return float(lower_bound(topology, self)), upper
        exchanged, times = exchange(topology, self)
        self.check_numbers(exchanged.topology)
        lower, upper = (float(times) / theta if theta else np.inf for theta in self.theta(exchanged, None)[::-1])
        return lower, upper if len(self.flow) else np.nan

    def statement(self) -> str:
        """The claim as a sentence about the collective."""
        toward = "from" if self.collective in ("broadcast", "scatter") else "to"
        root = f" {toward} rank {', '.join(map(str, self.root.tolist()))}" if self.collective in ROOTED else ""
        subject = f"{self.collective.replace('_', '-')}{root} between {self.ranks}{self._amounts()}"
        able = f", where switches {self.able.replace(' ', ' and ')}" if self.able else ""
        return self.sentence(subject, " ticks/flit", f"by any algorithm{able}")

    def _amounts(self) -> str:
        """The units of the ranks in a statement: '' where each has one, or the collective has only a vector."""
        units = self.units.tolist()
        if self.collective in ("broadcast", "reduce", "all_reduce") or all(amount == 1 for amount in units):
            return ""
        rest = f", ... ({len(units)} ranks)" if len(units) > MAX_AMOUNTS else ""
        return f" with amounts {', '.join(map(str, units[:MAX_AMOUNTS]))}{rest}"

    def _check_subject(self, topology: Topology, collectives: Sequence[Collective]) -> None:
        """Raise ``BadCertificate`` unless it is of one of the configuration's collectives.

        Kind, ranks, units, root and abilities of the switches are compared.
        """
        _, colon, kind = self.ceiling.partition(":")
        if colon and kind != self.collective:
            self.reject(f"the certificate is of the collective {self.collective!r}")
        if not collectives:
            self.reject("the configuration bounds no such collective")
        wrong = [_difference(topology, self, collective) for collective in collectives]
        if all(wrong):
            self.reject(f"the configuration bounds a collective with {wrong[0]}")


def _tree_arrays(proof: "Evidence") -> Fields:
    """The arrays of trees by name, as in a certificate; empty if there are no trees."""
    trees = [*((0, tree) for tree in proof.into), *((1, tree) for tree in proof.out)]
    if not trees:
        return {}
    paths = [path for _, tree in trees for path in tree.paths]
    return {
        "tree": np.array([[away, tree.root, tree.count] for away, tree in trees]).ravel(),
        "first": np.cumsum([0, *(len(tree.paths) for _, tree in trees)]),
        "start": np.cumsum([0, *map(len, paths)]),
        "vertex": np.array([vertex for path in paths for vertex in path], np.int64),
    }


def _difference(topology: Topology, saved: CollectiveProof, collective: Collective) -> str:
    """The first difference between a collective and a certificate, '' if there is none."""
    if saved.collective != collective.kind:
        return f"kind {collective.kind}, the certificate says {saved.collective!r}"
    if saved.ranks != collective.ranks:
        return f"ranks {collective.ranks}, the certificate says {saved.ranks!r}"
    if saved.able != collective.able:
        return f"switches that do {collective.able or 'nothing else'!r}, the certificate says {saved.able!r}"
    if saved.root.tolist() != [collective.root]:
        return f"root {collective.root}, the certificate says {saved.root.tolist()}"
    ranks = len(_rank_switches(topology, saved))
    if saved.units.tolist() != list(collective.amounts or [1] * ranks):
        return f"other amounts of its {ranks} ranks"
    return ""


def lower_bound(topology: Topology, saved: CollectiveProof) -> Fraction:
    """The time, in units over a channel of capacity 1, that no algorithm for a collective is faster than.

    Raises :class:`~flitlab.fluid.saved.BadCertificate` if the sets are invalid, or prove another time than is claimed.
    """
    _check(topology, saved)
    bound = _of_cut(topology, saved) if (saved.of_rank < 0).any() else _of_parts(topology, saved)
    if str(bound) != saved.bound:
        saved.reject(f"the sets prove {bound}, where {saved.bound or 'nothing'} is claimed")
    return bound


def tree_time(topology: Topology, saved: CollectiveProof) -> Fraction:
    """The time, in units over a channel of capacity 1, in which all data passes the saved trees.

    Raises :class:`~flitlab.fluid.saved.BadCertificate` for an invalid tree, a missing channel or rank, roots that do
    not fit the collective, or another time than is claimed.
    """
    _check(topology, saved)
    arcs, rank_vertex, common = _expanded(topology, saved)
    load: Counter[tuple[int, int]] = Counter()
    roots: tuple[Counter[int], Counter[int]] = Counter(), Counter()
    for (outward, root, count), paths in _trees(saved):
        # without multicast or reduction in switches, trees branch at ranks only
        free = ("multicast" if outward else "reduce") in saved.able.split()
        _check_tree(saved, root, paths, rank_vertex, None if free else set(rank_vertex))
        if outward not in (0, 1) or count <= 0:
            saved.reject(f"a tree of root {root} has direction {outward} and {count} parts")
        roots[outward][root] += count
        for path in paths:
            for x, y in pairwise(path):
                load[(x, y) if outward else (y, x)] += count
    if missing := load.keys() - arcs.keys():
        saved.reject(f"a tree uses the channel {min(missing)}, which the network lacks")
    parts = _parts_of_unit(saved, rank_vertex, *roots)
    time = max(Fraction(parts_on_arc * common, arcs[arc]) for arc, parts_on_arc in load.items()) / parts
    if str(time) != saved.reached:
        saved.reject(f"the trees reach {time}, where {saved.reached} is claimed")
    return time


def _expanded(topology: Topology, saved: CollectiveProof) -> tuple[dict[tuple[int, int], int], list[int], int]:
    """Capacity by arc, with hosts as vertices where their channels are finite, the vertices of ranks, and the scale."""
    channels, host, common = _capacities(topology, saved)
    arcs: Counter[tuple[int, int]] = Counter()
    for u, v, c in zip(topology.src.tolist(), topology.dst.tolist(), channels, strict=True):
        arcs[u, v] += c
    rank_vertex = _rank_switches(topology, saved).tolist()
    if host:
        for rank, v in enumerate(rank_vertex):
            arcs[v, topology.switches + rank] = arcs[topology.switches + rank, v] = host
        rank_vertex = [topology.switches + rank for rank in range(len(rank_vertex))]
    return dict(arcs), rank_vertex, common


def _trees(saved: CollectiveProof) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Direction, root and count of every tree, and its paths."""
    first, start, vertex = saved.first.tolist(), saved.start.tolist(), saved.vertex.tolist()
    for i, tree in enumerate(saved.tree.reshape(-1, 3).tolist()):
        yield tree, [vertex[start[p] : start[p + 1]] for p in range(first[i], first[i + 1])]


def _check_tree(
    saved: CollectiveProof, root: int, paths: list[list[int]], rank_vertex: list[int], ends: set[int] | None
) -> None:
    """Raise ``BadCertificate`` unless each path adds a vertex to the tree, and the tree reaches all ranks.

    ends: vertices at which paths may end; None: any.
    """
    reached = {root}
    for path in paths:
        if len(path) < 2 or path[0] not in reached or path[-1] in reached:
            saved.reject(f"the path {path} adds no vertex to a tree of root {root}")
        if ends is not None and path[-1] not in ends:
            saved.reject(f"a tree branches at {path[-1]}, where no rank is")
        reached.add(path[-1])
    if missing := set(rank_vertex) - reached:
        saved.reject(f"a tree of root {root} does not reach the rank at {min(missing)}")


def _parts_of_unit(saved: CollectiveProof, rank_vertex: list[int], into: Counter[int], out: Counter[int]) -> Fraction:
    """Parts of a unit, or of the vector; raises ``BadCertificate`` unless the roots fit the collective."""
    kind = saved.collective
    used, idle = (into, out) if kind in ("reduce_scatter", "reduce") else (out, into)
    expected: Counter[int] = Counter()
    if kind == "all_reduce":
        expected, idle = (+out if set(out) <= set(rank_vertex) else expected), into - out + (out - into)
    elif kind in ("broadcast", "reduce"):
        expected[rank_vertex[saved.root[0]]] = 1
    elif kind in ("all_gather", "reduce_scatter"):
        for vertex, units in zip(rank_vertex, saved.units.tolist(), strict=True):
            expected[vertex] += units
    parts = Fraction(used.total(), expected.total()) if expected.total() else Fraction(0)
    if not parts or +idle or any(used[v] != parts * expected[v] for v in used.keys() | expected.keys()):
        saved.reject(f"the roots of the trees are not those of {kind!r}")
    return Fraction(used.total()) if kind == "all_reduce" else parts


def exchange(topology: Topology, saved: CollectiveProof) -> tuple[Instance, Fraction]:
    """The all-to-all of a certificate as a demand between hosts, and the product of its time and theta."""
    rank_switch = _check_ranks(topology, saved)
    if saved.ranks == "switches":
        topology = topology.with_hosts(np.bincount(rank_switch, minlength=topology.switches), np.inf)
    if len(set(saved.units.tolist())) == 1:
        demand = make("traffic", kind="all_to_all").build(topology)
        return Instance(topology, demand), Fraction(int(saved.units[0]) * (len(rank_switch) - 1))
    matrix = saved.units[:, None] * (1.0 - np.eye(len(rank_switch)))
    return Instance(topology, table_traffic("all_to_all", topology, matrix, hose=False)), Fraction(1)


def _rank_switches(topology: Topology, saved: CollectiveProof) -> np.ndarray:
    """int64 [ranks]: the switch of every rank."""
    if saved.ranks == "hosts":
        return topology.host_switch
    if saved.ranks != "switches":
        saved.reject(f"ranks must be hosts or switches, not {saved.ranks!r}")
    return np.flatnonzero(topology.host_count) if topology.hosts else np.arange(topology.switches)


def _check_ranks(topology: Topology, saved: CollectiveProof) -> np.ndarray:
    """int64 [ranks]: the switch of every rank. Raises ``BadCertificate`` unless each rank has units."""
    rank_switch, units = _rank_switches(topology, saved), saved.units
    if len(units) != len(rank_switch) or len(rank_switch) < 2 or units.min() < 0 or not units.any():
        saved.reject(f"there must be units, not all of them 0, for each of {len(rank_switch)} ranks")
    return rank_switch


def _check(topology: Topology, saved: CollectiveProof) -> None:
    """Raise ``BadCertificate`` unless the arrays of a certificate fit its topology."""
    rank_switch = _check_ranks(topology, saved)
    if saved.collective not in LEAVING:
        saved.reject(f"no certificate proves a bound of {saved.collective!r}")
    if len(saved.root) != 1 or not 0 <= saved.root[0] < len(rank_switch):
        saved.reject(f"the root must be one of {len(rank_switch)} ranks")
    for name, size in (("part", topology.switches), ("of_rank", len(rank_switch))):
        label = getattr(saved, name)
        if len(label) != size or label.min() < -1 or label.max() >= len(rank_switch):
            saved.reject(f"{name} must be {size} numbers of parts, or -1")


def _capacities(topology: Topology, saved: CollectiveProof) -> tuple[list[int], int, int]:
    """Integer capacities of the channels, that of host channels (0 where infinite), and the integer that represents
    1.
    """
    at_hosts = 0.0 if saved.ranks == "switches" or isinf(topology.host_capacity) else topology.host_capacity
    exact = [Fraction(value) for value in (*topology.capacity.tolist(), at_hosts)]
    read = [value.limit_denominator(FINEST) for value in exact]
    if any(abs(one - other) > other * ROUNDING for one, other in zip(read, exact, strict=True)):
        saved.reject(f"a capacity is not a fraction with a denominator up to {FINEST}")
    common = lcm(*(value.denominator for value in read))
    *channels, host = (int(value * common) for value in read)
    return channels, host, common


def _crossing(topology: Topology, saved: CollectiveProof) -> tuple[Fraction, Fraction]:
    """Capacity of the channels that leave the sets, and of those that enter them."""
    channels, host, common = _capacities(topology, saved)
    label, out, into = saved.part.tolist(), 0, 0
    for u, v, c in zip(topology.src.tolist(), topology.dst.tolist(), channels, strict=True):
        if label[u] != label[v]:
            out += c * (label[u] >= 0)
            into += c * (label[v] >= 0)
    for v, own in zip(_rank_switches(topology, saved).tolist(), saved.of_rank.tolist(), strict=True):
        if label[v] != own:
            if not host:
                saved.reject("an infinite channel joins the sets")
            host_channels = host * ((label[v] >= 0) + (own >= 0))  # the channels from the rank and to it
            out, into = out + host_channels, into + host_channels
    return Fraction(out, common), Fraction(into, common)


def _of_cut(topology: Topology, saved: CollectiveProof) -> Fraction:
    """The time of a cut: units that must leave a side over its capacity."""
    inside = saved.of_rank == 0
    if saved.part.max() > 0 or saved.of_rank.max() != 0:
        saved.reject("a cut has one side, with some rank in it and some outside")
    if ROOT.get(saved.collective, inside[saved.root[0]]) != inside[saved.root[0]]:
        saved.reject("the root is on the wrong side of the cut")
    leaving = LEAVING[saved.collective]
    units = 1 if leaving == "one" else sum(saved.units[inside if leaving == "inside" else ~inside].tolist())
    return _over(saved, units, _crossing(topology, saved)[0])


def _over(saved: CollectiveProof, units: int, capacity: Fraction) -> Fraction:
    """The time of units over a capacity; raises ``BadCertificate`` where no channel crosses."""
    if not capacity:
        saved.reject("no channel leads across the sets")
    return units / capacity


def _of_parts(topology: Topology, saved: CollectiveProof) -> Fraction:
    """The time of disjoint parts: messages that must cross between them over the capacity."""
    count = int(saved.of_rank.max()) + 1
    if saved.collective != "all_reduce" or set(saved.of_rank.tolist()) != set(range(count)) or count < 2:
        saved.reject("parts must be of an all-reduce, two or more, each with a rank")
    if saved.part.max() >= count:
        saved.reject("there is a part without ranks")
    if saved.able == "multicast reduce":
        saved.reject("parts are no proof where switches copy and reduce")
    out, into = _crossing(topology, saved)
    return _over(saved, 2 * (count - 1), {"": min(out, into), "multicast": into, "reduce": out}[saved.able])
