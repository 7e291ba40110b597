# SPDX-License-Identifier: Apache-2.0
"""Flows between hosts and the paths that each may use: what the throughput models divide capacity among."""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError, Problem
from flitlab.models.arrays import Floats, Ints
from flitlab.models.fairness import jain
from flitlab.models.instance import Instance
from flitlab.models.paths.pathset import starts
from flitlab.models.rules.port_sets import allows
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic

PATHS_MOST = 2_000_000
"""Paths that a model may divide capacity among, all flows together (about 100 bytes each)."""
SPREAD_MOST = 1e6
"""Ratio of the largest capacity to the least, and of weights, up to which a solver's tolerances tell rates apart."""


@dataclass(frozen=True, eq=False)
class CompetingFlows:
    """A flow for every pair of hosts with demand; links are the network, injection and ejection channels.

    source, target: int64 [flows], hosts. weight: float64 [flows], T of the pair.
    paths: of every flow at least one, each of at least one link; their ``flow`` means nothing.
    capacity: float64 [links]: network channels first, then, unless infinite, injection and ejection by host.
    local: demand that crosses no link at all (the same switch, infinite host channels) and is no flow here.
    """

    source: Ints
    target: Ints
    weight: Floats
    paths: Paths
    capacity: Floats
    local: float = 0.0

    @property
    def path_weight(self) -> Floats:
        """float64 [paths]: the weight of the flow that each path serves."""
        return np.repeat(self.weight, np.diff(self.paths.first))

    def rates(self, path_rate: np.ndarray) -> "Rates":
        """What each flow gets from rates [paths]."""
        return Rates(np.add.reduceat(path_rate, self.paths.first[:-1]), self.weight)


@dataclass(frozen=True, eq=False)
class Rates:
    """What a model gives every flow. rate: float64 [flows], flits per tick. weight: as in :class:`CompetingFlows`."""

    rate: Floats
    weight: Floats

    @property
    def total(self) -> float:
        """The aggregate throughput of all flows."""
        return float(self.rate.sum())

    @property
    def mean(self) -> float:
        """Aggregate throughput over the number of flows."""
        return float(self.rate.mean())

    @property
    def least(self) -> float:
        """The rate of the worst flow."""
        return float(self.rate.min())

    @property
    def theta(self) -> float:
        """The largest theta such that every flow gets theta times its demand."""
        return float((self.rate / self.weight).min())

    @property
    def jain(self) -> float:
        """Jain's fairness index of the rates: 1 if all are equal, 1 / flows if one has everything."""
        return jain(self.rate)


def flows_of(instance: Instance) -> CompetingFlows:
    """The flows of a scenario over the paths of its routing; next hops are unrolled into all their paths.

    Raises :class:`~flitlab.fluid.problem.FluidError` if that is too many paths, or if a pair has none.
    """
    topology, traffic = instance.topology, instance.traffic
    if (count := flows_most(traffic)) > PATHS_MOST:
        raise FluidError(f"there are {count} flows, more than {PATHS_MOST} paths")
    problem = Problem.of(topology, traffic, instance.routes)
    return flows_over(topology, traffic, problem, unrolled(problem) if problem.paths is None else problem.paths)


def check_spread(flows: CompetingFlows) -> None:
    """Raise :class:`~flitlab.fluid.problem.FluidError` for capacities or weights more than SPREAD_MOST apart."""
    for what, value in (("links have capacities", flows.capacity), ("flows have demands", flows.weight)):
        if value.max() > SPREAD_MOST * value.min():
            reason = f"more than the factor of {SPREAD_MOST:g} that the LPs can tell apart"
            raise FluidError(f"{what} from {value.min():g} to {value.max():g}: {reason}")


def flows_most(traffic: Traffic) -> int:
    """Pairs of hosts with demand, at most."""
    uniform = traffic.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF)
    return traffic.topology.hosts**2 if uniform else len(traffic.fixed) + len(traffic.column)


def flows_over(topology: Topology, traffic: Traffic, problem: Problem, network: Paths) -> CompetingFlows:
    """The flows of a demand over the paths ``network`` of the commodities of its problem.

    Raises :class:`~flitlab.fluid.problem.FluidError` if that is too many paths.
    """
    commodity = np.full((topology.switches, topology.switches), -1)
    commodity[problem.demand.source, problem.demand.destination] = np.arange(problem.demand.size)
    source, target, weight = traffic.pairs()
    between = commodity[topology.host_switch[source], topology.ejection_switch[target]]
    finite = np.isfinite(topology.host_capacity)
    kept = (weight > 0) & ((between >= 0) | finite)
    local = float(weight[(weight > 0) & ~kept].sum())
    source, target, weight, between = source[kept], target[kept], weight[kept], between[kept]
    paths = _by_host(network, between, topology.channels, topology.hosts, source, target, finite)
    ends = np.full(2 * topology.hosts if finite else 0, topology.host_capacity)
    return CompetingFlows(source, target, weight, paths, np.concatenate([topology.capacity, ends]), local)


def _by_host(
    network: Paths, commodity: Ints, channels: int, hosts: int, source: Ints, target: Ints, finite: bool
) -> Paths:
    """The paths of every flow: those of its commodity (-1: one of no channels) between its host channels."""
    count = np.where(commodity < 0, 1, np.diff(network.first, append=0)[commodity])
    first = starts(count)
    if first[-1] > PATHS_MOST:
        raise FluidError(f"the flows have {first[-1]} paths, more than {PATHS_MOST}")
    flow = np.repeat(np.arange(len(commodity)), count)
    path = network.first[commodity[flow]] + np.arange(first[-1]) - first[flow]
    inner = np.where(commodity[flow] < 0, 0, np.append(network.hops, 0)[path])
    start = starts(inner + 2 * finite)
    channel = np.empty(start[-1], np.int32)
    within = np.repeat(np.arange(len(flow)), inner)
    offset = np.arange(len(within)) - starts(inner)[within]
    channel[start[within] + finite + offset] = network.channel[network.start[path[within]] + offset]
    if finite:
        channel[start[:-1]] = channels + source[flow]
        channel[start[1:] - 1] = channels + hosts + target[flow]
    return Paths(first, start, channel, np.zeros(len(flow)))


def unrolled(problem: Problem) -> Paths:
    """Every path that the next hops of a routing allow to every commodity.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there are more than PATHS_MOST.
    """
    graph, demand, ports = problem.graph, problem.demand, problem.dags.ports
    if demand.size == 0:
        return Paths.none(0)
    target, at = demand.destination, demand.source
    whole = np.arange(demand.size)  # commodity of each partial path
    trail = np.zeros((demand.size, 0), np.int64)  # its channels
    done: list[tuple[np.ndarray, np.ndarray]] = []
    while len(whole):
        degree = np.diff(graph.out_start)[at]
        parent = np.repeat(np.arange(len(at)), degree)
        port = np.arange(len(parent)) - starts(degree)[parent]
        allowed = allows(ports, target[whole[parent]], at[parent], port)
        parent, channel = parent[allowed], (graph.out_start[at[parent]] + port)[allowed]
        trail, whole, at = np.column_stack([trail[parent], channel]), whole[parent], graph.dst[channel]
        arrived = at == target[whole]
        done.append((whole[arrived], trail[arrived]))
        trail, whole, at = trail[~arrived], whole[~arrived], at[~arrived]
        if len(whole) + sum(len(commodity) for commodity, _ in done) > PATHS_MOST:
            raise FluidError(f"the next hops allow more than {PATHS_MOST} paths")
    commodity = np.concatenate([commodity for commodity, _ in done])
    lengths = np.concatenate([np.full(len(trail), trail.shape[1]) for _, trail in done])
    order = np.argsort(commodity, kind="stable")
    start = starts(lengths)
    flat = np.concatenate([trail.ravel() for _, trail in done])
    ordered = starts(lengths[order])
    place = np.repeat(start[order] - ordered[:-1], lengths[order]) + np.arange(ordered[-1])
    first = np.searchsorted(commodity[order], np.arange(demand.size + 1))
    return Paths(first, ordered, flat[place].astype(np.int32), np.zeros(len(order)))
