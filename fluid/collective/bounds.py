# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of a collective on a network, by any algorithm, with proofs.

Times over bandwidth are fractions, in units (of an all-reduce, a broadcast or a reduction: vectors) over a channel of
capacity 1. With a size and the delays of a switching mode they become ticks. docs/collectives.md has the proofs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, cast

import numpy as np

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.collective import ROOTED, Collective, Evidence
from flitlab.fluid.collective.cuts import CollectiveCut
from flitlab.fluid.collective.latency import Latency
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.parts import Counted, Parts, all_reduce_parts
from flitlab.fluid.collective.rooted import rooted_trees
from flitlab.fluid.concurrent import concurrent_flow
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Floats
from flitlab.models.collective.schedule import KINDS
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic

By = Literal["cut", "parts", "latency", "cut with latency", "flow"]
"""What proves a bound."""

MAX_ROOTED_RANKS = 16
"""Ranks up to which the linear program of rooted trees is solved beside the bounds; it takes 0.2 s."""

FINE, FINE_SWITCHES, COARSE = 1e-4, 128, 1e-2
"""Default relative gap of an all-to-all, the number of switches up to which it holds, and the gap on larger
networks."""


HOSTS_BIND_NOTE = (
    "no channel is slower than a host's, so the bound is that of the hosts and does not depend on the network; which "
    "algorithms get there does"
)
"""Note on bounds that are the same on every network."""


@dataclass(frozen=True, eq=False)
class AllToAllFlow:
    """An all-to-all as a maximum concurrent flow with the units of every pair of ranks as demand.

    instance: the demand. row: its ceiling. factor: time is factor / theta.
    """

    instance: Instance
    row: Ceiling
    factor: Fraction

    @property
    def time(self) -> Fraction:
        """The lower bound on the time that channel prices prove."""
        return self._time(self.row.upper)

    @property
    def reached(self) -> Fraction:
        """The time in which the flow delivers all data."""
        return self._time(self.row.lower)

    def _time(self, theta: float) -> Fraction:
        return Fraction(0) if np.isinf(theta) else self.factor / Fraction(theta)

    @property
    def text(self) -> str:
        """The method that found the flow."""
        return f"maximum concurrent flow, {self.row.method}"


Proof = CollectiveCut | Parts | AllToAllFlow
"""Proof of a time over bandwidth."""


@dataclass(frozen=True, eq=False)
class TimeBound:
    """A lower bound on the time, in ticks or over bandwidth, with its kind and proof (None: latency)."""

    time: Fraction
    by: By
    proof: Proof | None


@dataclass(frozen=True, eq=False)
class CollectiveBounds:
    """All bounds on a collective on a network.

    proofs: of times over bandwidth, one of each kind, the simplest first.
    """

    collective: Collective
    network: CollectiveNetwork
    proofs: dict[By, Proof]

    @cached_property
    def lower(self) -> TimeBound:
        """The largest lower bound on the time over bandwidth, in units over a channel of capacity 1."""
        by = max(self.proofs, key=lambda name: self.proofs[name].time)
        return TimeBound(self.proofs[by].time, by, self.proofs[by])

    @cached_property
    def upper(self) -> tuple[Fraction, str] | None:
        """The shortest time over bandwidth that is known to be possible, and its schedule; None if none is known.

        The schedule exists, but may need very many very small messages.
        """
        return min(((time, name) for name, time in schedules(self)), default=None)

    @property
    def note(self) -> str:
        """Why the bound is the same on many networks; '' if it is not."""
        alike = self.network.host_limited and self.collective.kind in ("all_gather", "reduce_scatter", "all_reduce")
        return HOSTS_BIND_NOTE if alike else ""

    @property
    def cut(self) -> CollectiveCut:
        """The cut of the proofs; all collectives but an all-to-all have one. Raises ``KeyError`` for an all-to-all."""
        return cast(CollectiveCut, self.proofs["cut"])

    @property
    def evidence(self) -> Evidence:
        """The proofs of both ends, for a certificate."""
        proof = self.lower.proof
        if isinstance(proof, AllToAllFlow):
            row = proof.row
            flow = cast(Floats | Paths | None, row.flow)
            return Evidence(self.collective, self.network.amount, proof.instance, row.certificate, flow)
        assert proof is not None
        part, of_rank = proof.labels
        return Evidence(self.collective, self.network.amount, bound=proof.time, part=part, of_rank=of_rank)

    def at(self, size: Fraction | int, latency: Latency) -> TimeBound:
        """The lower bound in ticks for a unit (or vector) of ``size`` flits, or bytes if ticks are those of bytes."""
        return max((bound.at(size) for bound in linear_bounds(self, latency)), key=lambda bound: bound.time)


@dataclass(frozen=True, eq=False)
class LinearBound:
    """A lower bound in ticks, linear in the size: ``fixed`` + ``per_unit`` * flits (or bytes)."""

    by: By
    proof: Proof | None
    per_unit: Fraction
    fixed: Fraction

    def at(self, size: Fraction | int) -> TimeBound:
        """The bound for a size."""
        return TimeBound(self.fixed + self.per_unit * size, self.by, self.proof)


@lru_cache(maxsize=64)
def linear_bounds(collective_bounds: CollectiveBounds, latency: Latency) -> tuple[LinearBound, ...]:
    """All bounds on a collective with the delays of a switching mode, as functions of the size; cached."""
    network, none = collective_bounds.network, Fraction(0)
    table = [
        LinearBound(by, proof, proof.time * latency.flits_per_tick, none)
        for by, proof in collective_bounds.proofs.items()
    ]
    table += [
        LinearBound("cut with latency", bound.proof, bound.per_unit, latency.cut_latency(network, bound.proof))
        for bound in table
        if isinstance(bound.proof, CollectiveCut) and bound.proof.units
    ]
    longest = latency.longest(network, *needs(collective_bounds.collective, network))
    return (*table, LinearBound("latency", None, none, longest))


def bounds(topology: Topology, collective: Collective, gap: float | None = None) -> CollectiveBounds:
    """All bounds on a collective on a topology.

    Parameters
    ----------
    topology : Topology
        The network.
    collective : Collective
        The collective.
    gap : float or None
        Relative gap of an all-to-all; by default 1e-4, on more than 128 switches 1e-2.

    Raises
    ------
    FluidError
        The collective is not defined here, or numbers are too large for exact arithmetic.
    """
    if collective.kind not in KINDS:
        raise FluidError(f"no bounds are known for the collective {collective.kind!r}; choices: {', '.join(KINDS)}")
    network = CollectiveNetwork.of(topology, collective.ranks, collective.amounts)
    if not 0 <= collective.root < network.ranks:
        raise FluidError(f"root {collective.root} must be one of the {network.ranks} ranks")
    return CollectiveBounds(collective, network, _proofs(topology, collective, network, gap))


def _proofs(
    topology: Topology, collective: Collective, network: CollectiveNetwork, gap: float | None
) -> dict[By, Proof]:
    if collective.kind == "all_to_all":
        return {"flow": _all_to_all(topology, collective, network, gap)}
    if collective.kind in ROOTED:
        return {"cut": getattr(cuts, collective.kind)(network, collective.root)}
    cut: CollectiveCut = getattr(cuts, collective.kind)(network)
    proofs: dict[By, Proof] = {"cut": cut}
    counted = _counted(collective)
    if collective.kind == "all_reduce" and counted is not None:
        proofs["parts"] = all_reduce_parts(network, cut.capacity, counted)
    return proofs


def _counted(collective: Collective) -> Counted | None:
    """Direction in which messages between parts are counted: into each with multicast, out of each with reduction."""
    if collective.multicast:
        return None if collective.reduce else "in"
    return "out" if collective.reduce else "both"


def needs(collective: Collective, network: CollectiveNetwork) -> tuple[Bools, Bools]:
    """bool [ranks] each: the ranks whose data is needed, and the ranks that need data of each of them."""
    every, root = np.ones(network.ranks, bool), np.arange(network.ranks) == collective.root
    with_units = network.amount > 0
    return {
        "all_gather": (with_units, every), "reduce_scatter": (every, with_units), "all_reduce": (every, every),
        "broadcast": (root, every), "reduce": (every, root), "scatter": (root, with_units),
        "gather": (with_units, root), "all_to_all": (with_units, every),
    }[collective.kind]  # fmt: skip


def _all_to_all(
    topology: Topology, collective: Collective, network: CollectiveNetwork, gap: float | None
) -> AllToAllFlow:
    """The concurrent flow in which each rank sends its units to each other one."""
    if collective.ranks == "switches":
        topology = topology.with_hosts(network.is_rank.astype(np.int64), np.inf)
    traffic, factor = _demand(topology, network)
    instance = Instance(topology, traffic)
    gap = gap or (FINE if topology.switches <= FINE_SWITCHES else COARSE)
    return AllToAllFlow(instance, concurrent_flow(instance, "mcf", "auto", gap), factor)


def _demand(topology: Topology, network: CollectiveNetwork) -> tuple[Traffic, Fraction]:
    """An all-to-all as a demand between hosts, and the factor by which the units are larger."""
    if len(set(network.amount.tolist())) == 1:
        times = (network.ranks - 1) * int(network.amount[0])
        return make("traffic", kind="all_to_all").build(topology), Fraction(times)
    matrix = np.repeat(network.amount[:, None].astype(float), network.ranks, axis=1)
    np.fill_diagonal(matrix, 0)
    return table_traffic("all_to_all", topology, matrix, hose=False), Fraction(1)


def schedules(collective_bounds: CollectiveBounds) -> Iterator[tuple[str, Fraction]]:
    """Known schedules: names, and their times over bandwidth."""
    collective, network, lower = collective_bounds.collective, collective_bounds.network, collective_bounds.lower
    if isinstance(lower.proof, AllToAllFlow):
        yield "flow", lower.proof.reached
        return
    if collective.kind in ("scatter", "gather"):  # one flow from many sources, or to many sinks
        yield "flow", lower.time
        return
    if not _packs(network):
        return
    if collective.kind != "all_reduce":
        yield "trees", lower.time
        return
    even = network.even()
    gathered = cuts.all_gather(even).time
    scattered = gathered if network.balanced else cuts.reduce_scatter(even).time
    yield "reduce-scatter and all-gather", (scattered + gathered) / network.ranks
    parts = collective_bounds.proofs.get("parts")
    if network.ranks_only and network.symmetric and isinstance(parts, Parts) and parts.best:
        yield "spanning trees, both ways", parts.time
    elif network.ranks_only and network.ranks <= MAX_ROOTED_RANKS:
        yield "rooted trees", rooted_trees(network).reached


def _packs(network: CollectiveNetwork) -> bool:
    """Whether trees to all ranks reach the cut bound: all vertices are ranks, or all are balanced."""
    return network.ranks_only or network.balanced
