# SPDX-License-Identifier: Apache-2.0
"""Zero-load latency: the least mean latency of packets, over shortest paths without queueing."""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
from flitlab.models.topology.graph import Topology
from flitlab.sim.judge.claim import Delays

ALL = 1e-9
"""A share of the demand this close to 1 is all of it."""

MOST_RATES = 8
"""Different rates of the slowest channel of a path that are told apart."""

CLOSED = 1e30
"""The price of a channel that no path takes."""


@dataclass(frozen=True)
class ZeroLoadLatency:
    """The least mean latency in cycles, its parts in cycles, and the mean hops between switches.

    ends: with the delays of host channels. tail: until the tail has followed the head.
    """

    ticks: float
    hops: float
    network: float
    ends: float
    tail: float


class ZeroLoad:
    """Distances of the demand of an instance in cycles, within its routes if these are oblivious.

    flits: mean length of a packet. Its tail follows its head at the rate of the slowest channel of its path, and
    catches up with it while only the head waits.
    """

    def __init__(self, instance: Instance, delays: Delays, flits: float) -> None:
        topology, traffic, routes = instance.topology, instance.traffic, instance.routes
        self.delays = delays
        self._tails = np.full(1, (flits - 1) / topology.host_capacity)
        fixed_routes = routes if routes is not None and routes.oblivious else None
        amount, ticks, hops = np.zeros(0), np.zeros(0), np.zeros(0)
        if traffic.switch_pairs()[2].size:
            problem = Problem.of(topology, traffic, fixed_routes)
            amount = problem.demand.amount
            ticks, tails = _quickest(problem, topology, delays, flits - 1)
            hops = problem.distances(np.ones(topology.channels))
            self._tails = np.concatenate([self._tails, tails])
        access = topology.access_delay.astype(float) * delays.tick
        self._access = [(access, each) for each in (traffic.rate, traffic.column_sums)]
        within = max(float(traffic.rate.sum()) - float(amount.sum()), 0.0)
        self._amount = np.concatenate([[within], amount])
        self._ticks, self._hops = (np.concatenate([[0.0], each]) for each in (ticks, hops))

    def least(self, share: float = 1.0) -> ZeroLoadLatency:
        """The latency of the nearest pairs that make ``share`` of the demand, since an unfair network may starve the
        others.
        """
        order = np.argsort(self._ticks + self._tails, kind="stable")
        weight = _nearest(self._amount[order], share)
        network, tail, hops = (_mean(each[order], weight) for each in (self._ticks, self._tails, self._hops))
        ends = self.delays.ends + sum(_least_mean(delay, amount, share) for delay, amount in self._access)
        return ZeroLoadLatency(network + ends + tail, hops, network, ends, tail)


def _quickest(problem: Problem, topology: Topology, delays: Delays, rest: float) -> tuple[Floats, Floats]:
    """The distance of the head, and the time of the tail, of the quickest path of each commodity, in cycles.

    rest: flits behind the head. On a channel of rate r the tail starts rest / r after the head at least; from there it
    has all delays but those of the head alone at later switches. This holds for every channel of a path, whether
    switches wait for whole packets or not. Three channels are taken: that to the destination host; the last one before
    it, at most as fast as the fastest to its switch; and the slowest, before which the head waits at one switch at
    least. Of many rates of the slowest channel a few are told apart: the paths of one pass have no slower channel than
    the first of these rates, and the tail takes the last one.

    Returns
    -------
    float64 [commodities] each.
    """
    host, own = topology.host_capacity, topology.delay.astype(float) * delays.tick
    rate = np.minimum(topology.capacity, host)
    fastest = np.zeros(topology.switches)
    np.maximum.at(fastest, topology.dst, rate)
    before_last = rest / fastest[problem.demand.destination] - delays.header
    rates = np.unique(rate)
    starts = np.unique(np.linspace(0, len(rates) - 1, MOST_RATES).round().astype(int))
    ticks, tails = np.full(problem.demand.amount.shape, np.inf), np.zeros(problem.demand.amount.shape)
    for start, after in zip(starts, [*starts[1:], len(rates)], strict=True):
        slow, slowest = rate < rates[start], rates[after - 1]
        head = problem.distances(np.where(slow, CLOSED, own + delays.hop))
        tail = np.maximum(rest / host, before_last)
        if slowest < host:
            behind = problem.distances(np.where(slow, CLOSED, own + delays.hop - delays.header))
            tail = np.maximum(tail, behind + rest / slowest - head)
        quicker = head + tail < ticks + tails
        ticks, tails = np.where(quicker, head, ticks), np.where(quicker, tail, tails)
    return ticks, tails


def _nearest(weight: Floats, share: float) -> Floats:
    """Weights of the first entries that make ``share`` of the total, 0 of the others."""
    if share >= 1 - ALL:
        return weight
    before = np.cumsum(weight) - weight
    nearest: Floats = np.clip(share * weight.sum() - before, 0, weight)
    return nearest


def _least_mean(value: Floats, weight: Floats, share: float) -> float:
    """The mean of the least values that make ``share`` of the total weight."""
    order = np.argsort(value, kind="stable")
    return _mean(value[order], _nearest(weight[order], share))


def _mean(value: Floats, weight: Floats) -> float:
    return float((value * weight).sum() / weight.sum())
