# SPDX-License-Identifier: Apache-2.0
"""Zero-load latency: the least mean latency of packets, over shortest paths without queueing."""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats
from flitlab.models.instance import Instance
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

    ends: with the delays of host channels.
    """

    ticks: float
    hops: float
    network: float
    ends: float
    tail: float


class ZeroLoad:
    """Distances of the demand of an instance in cycles, within its routes if these are oblivious.

    flits: mean length of a packet; its tail follows its head at the rate of the slowest channel of its path.
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
            prices = delays.hop + topology.delay.astype(float) * delays.tick
            ticks, tails = _quickest(problem, prices, topology.capacity, flits - 1, topology.host_capacity)
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


def _quickest(
    problem: Problem, prices: Floats, capacity: Floats, rest: float, host: float
) -> tuple[Floats, Floats]:  # fmt: skip
    """The distance, and the time of the tail, of the quickest path of each commodity: float64 [commodities] each.

    prices: float64 [channels]. rest: flits behind the head. host: the capacity of a host's channel. Of many rates of
    the slowest channel a few are told apart, and the tail takes the fastest one up to the next.
    """
    rates = np.unique(np.minimum(capacity, host))
    starts = np.unique(np.linspace(0, len(rates) - 1, MOST_RATES).round().astype(int))
    ticks, tails = np.full(problem.demand.amount.shape, np.inf), np.zeros(problem.demand.amount.shape)
    for start, after in zip(starts, [*starts[1:], len(rates)], strict=True):
        slow = np.minimum(capacity, host) < rates[start]
        distance, tail = problem.distances(np.where(slow, CLOSED, prices)), rest / rates[after - 1]
        quicker = distance + tail < ticks + tails
        ticks, tails = np.where(quicker, distance, ticks), np.where(quicker, tail, tails)
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
