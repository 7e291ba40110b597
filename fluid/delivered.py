# SPDX-License-Identifier: Apache-2.0
"""Lower bounds: the rates that a flow, by destination or along paths, certainly delivers within all capacities."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from flitlab.fluid.graph import Demand, Graph
from flitlab.fluid.mcf.dense import send
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Bools, Floats, Integers, Ints, Ints32, sums
from flitlab.models.jit import njit
from flitlab.models.rules.port_sets import allows

EPSILON = float(np.finfo(float).eps)
NEGLIGIBLE, NEGLIGIBLE_WITH_GAP = 1e-12, 1e-9
"""Relative loss of a lower bound up to which a remainder is put on every channel, not routed; and where a gap is
expected."""


def verify_flow(problem: Problem, flow: Floats, amount: Floats | None = None) -> Floats:
    """Rate of each commodity in a flow by destination, scaled until the fullest channel is full.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow >= 0 toward each destination, in any scale.
    amount : float64 [commodities], optional
        What the flow delivers; by default the demand.

    Returns
    -------
    float64 [commodities]
        Flits/tick.

    Raises
    ------
    ValueError
        As :func:`delivering_load`.
    """
    amount = problem.demand.amount if amount is None else amount
    load = delivering_load(problem, flow, amount)
    rate: Floats = amount / max((load / problem.graph.capacity).max(), np.finfo(float).tiny)
    return rate


def delivering_load(problem: Problem, flow: Floats, amount: Floats) -> Floats:
    """A channel load at which a flow certainly delivers ``amount``.

    What violates conservation at a node, within the rounding of sums of doubles, is routed over the shortest allowed
    path to its destination, with lengths 1 / capacity.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow >= 0 toward each destination.
    amount : float64 [commodities]
        What the flow is to deliver.

    Returns
    -------
    float64 [channels]
        Load.

    Raises
    ------
    ValueError
        Flow is negative or on channels that the routes do not allow, or no allowed path leads on from a node.
    """
    graph = problem.graph
    if not (flow >= 0).all():
        raise ValueError("flow must not be negative")
    if problem.restricted:
        _check_allowed(problem, *np.nonzero(flow))
    shortfall, hidden = _shortfall(problem, flow, amount), rounding_error(graph, flow)
    hidden[np.arange(len(hidden)), problem.demand.target] = 0
    load: np.ndarray = flow.sum(axis=0)
    use, remainder = load / graph.capacity, np.maximum(shortfall, 0).sum()
    # a negligible remainder is put on every channel
    if (use + (remainder + hidden.sum()) / graph.capacity).max() <= (1 + NEGLIGIBLE) * use.max():
        whole: Floats = load + remainder
        return whole
    return load + _route_remainder(problem, shortfall + hidden, np.zeros((0, graph.channels)))


class SparseFlow(NamedTuple):
    """A flow by destination as lists: channels toward the i-th destination are start[i]:start[i + 1].

    start: int64 [targets + 1]. channel: int32, amount: float64 [entries].
    """

    start: Ints
    channel: Ints32
    amount: Floats

    def dense(self, channels: int) -> Floats:
        """float64 [targets, channels]: the flow as a matrix."""
        count = np.diff(self.start)
        flow = np.zeros((len(count), channels))
        flow[np.repeat(np.arange(len(count)), count), self.channel] = self.amount
        return flow


def delivering_load_sparse(problem: Problem, demand: Demand, flow: SparseFlow) -> Floats:
    """A channel load at which a sparse flow certainly delivers ``demand``, like :func:`delivering_load`.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    demand : Demand
        Part of the demand of the problem.
    flow : SparseFlow
        Flow toward the destinations of ``demand``.

    Returns
    -------
    float64 [channels]
        Load.
    """
    graph = problem.graph
    if not (flow.amount >= 0).all():
        raise ValueError("flow must not be negative")
    if problem.restricted:
        target = np.repeat(demand.target, np.diff(flow.start))
        if not _allowed(problem, target, flow.channel).all():
            raise ValueError("flow on a channel that the routes do not allow")
    load, remainder = _remainder(graph, demand, flow)
    use = load / graph.capacity
    if (use + remainder.sum() / graph.capacity).max() <= (1 + NEGLIGIBLE_WITH_GAP) * use.max():
        whole: Floats = load + remainder.sum()
        return whole
    part = Problem(graph, demand, problem.dags)
    return load + _route_remainder(part, remainder, np.zeros((0, graph.channels)))


@njit
def _remainder(graph: Graph, demand: Demand, flow: SparseFlow) -> tuple[Floats, Floats]:
    """Load of a flow, and the amount that it may leave at each node, rounding included.

    A sum of k doubles has an error of less than k times their sum in ulps. Returns float64 [channels] and float64
    [targets, nodes].
    """
    nodes, targets = len(graph.in_start) - 1, len(demand.target)
    load, remainder = np.zeros(len(graph.src)), np.zeros((targets, nodes))
    outflow, inflow, terms = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for i in range(targets):
        outflow[:] = 0.0
        inflow[:] = 0.0
        terms[:] = 2.0
        j, end = flow.start[i], flow.start[i + 1]
        while j < end:
            u, begin, sent = graph.src[flow.channel[j]], j, 0.0
            while j < end and graph.src[flow.channel[j]] == u:  # channels out of a node are usually adjacent
                a, amount = flow.channel[j], flow.amount[j]
                load[a] += amount
                inflow[graph.dst[a]] += amount
                terms[graph.dst[a]] += 1.0
                sent += amount
                j += 1
            outflow[u] += sent
            terms[u] += j - begin
        for k in range(demand.start[i], demand.start[i + 1]):
            remainder[i, demand.source[k]] = demand.amount[k]
        for v in range(nodes):
            rounding = EPSILON * terms[v] * (inflow[v] + outflow[v] + remainder[i, v])
            remainder[i, v] = max(remainder[i, v] + inflow[v] - outflow[v] + rounding, 0.0)
        remainder[i, demand.target[i]] = 0.0
    return load, remainder


def completed_flow(problem: Problem, flow: Floats, amount: Floats) -> np.ndarray:
    """A flow without the shortfall that a solver's tolerances leave: the rest is routed over shortest paths.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    flow : float64 [targets, channels]
        Flow of a solver.
    amount : float64 [commodities]
        What the flow is to deliver.

    Returns
    -------
    float64 [targets, channels]
        Flow that delivers ``amount``.
    """
    whole = flow.copy()
    _route_remainder(problem, _shortfall(problem, flow, amount), whole)
    return whole


def _shortfall(problem: Problem, flow: Floats, amount: Floats) -> Floats:
    """float64 [targets, nodes]: inflow and supply of a node that do not leave it."""
    demand = problem.demand
    shortfall = -net_outflow(problem.graph, flow)
    shortfall[demand.row, demand.source] += amount
    shortfall[np.arange(len(demand.target)), demand.target] = 0
    return shortfall


def _route_remainder(problem: Problem, remainder: Floats, flow: Floats) -> Floats:
    """Route the positive remainders at nodes to their destinations; returns their load, float64 [channels].

    remainder: float64 [targets, nodes]. flow: float64 [targets or 0, channels], to which they are added.
    """
    graph, demand = problem.graph, problem.demand
    row, node = np.nonzero(remainder > 0)
    start = np.searchsorted(row, np.arange(len(demand.target) + 1))
    missing = Demand(demand.target, start, node, remainder[row, node])
    load = np.zeros(graph.channels)
    volume = send(graph, missing, problem.dags, 1 / graph.capacity, 0.0, load, flow)
    if not np.isfinite(volume):
        raise ValueError("flow ends at a node from which no allowed path leads on")
    return load


def rounding_error(graph: Graph, flow: Floats) -> Floats:
    """Upper bound on the rounding error of :func:`net_outflow`.

    Parameters
    ----------
    graph : Graph
        The graph.
    flow : float64 [targets, channels]
        Flow by destination.

    Returns
    -------
    float64 [targets, nodes]
        Error.
    """
    out, into = _incidence(graph)
    terms = np.bincount(graph.src, minlength=graph.nodes) + np.bincount(graph.dst, minlength=graph.nodes) + 2
    error: np.ndarray = np.finfo(float).eps * terms * (flow @ (out + into))
    return error


def net_outflow(graph: Graph, flow: Floats) -> Floats:
    """Outflow minus inflow of every node.

    Parameters
    ----------
    graph : Graph
        The graph.
    flow : float64 [targets, channels]
        Flow by destination.

    Returns
    -------
    float64 [targets, nodes]
        Net outflow.
    """
    out, into = _incidence(graph)
    net: Floats = flow @ (out - into)
    return net


def _incidence(graph: Graph) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Incidence matrices [channels, nodes]: 1 at the node where a channel begins, and where it ends."""
    channel, one = np.arange(graph.channels), np.ones(graph.channels)
    out, into = (
        sparse.csr_array((one, (channel, end)), (graph.channels, graph.nodes)) for end in (graph.src, graph.dst)
    )
    return out, into


def verify_paths(problem: Problem, paths: Paths) -> Floats:
    """float64 [commodities]: rates of path flows, scaled until the fullest channel is full.

    Paths without channels carry nothing. Raises ``ValueError`` for negative flow, and for paths that do not lead from
    source to destination over allowed channels.
    """
    _check_paths(problem, paths)
    load = paths.load(problem.graph.channels)
    rate: Floats = _served(problem, paths) / max((load / problem.graph.capacity).max(), np.finfo(float).tiny)
    return rate


def verify_orbit(problem: Problem, paths: Paths) -> tuple[float, np.ndarray]:
    """Theta, and the channel load at theta (float64 [channels]), of path flows that symmetries copy to all
    destinations.

    All channels of a class carry equal shares of the load of the class. ``paths`` are those of the commodities of
    ``problem.orbit``. Raises ``ValueError`` as :func:`verify_paths`.
    """
    assert problem.orbit is not None
    orbit = problem.orbit
    one = Problem(problem.graph, orbit.demand)
    _check_paths(one, paths)
    use = (np.bincount(orbit.row, paths.load(problem.graph.channels)) / orbit.capacity)[orbit.row]
    theta = (_served(one, paths) / orbit.demand.amount).min() / use.max()
    return float(theta), use / use.max() * problem.graph.capacity


def _served(problem: Problem, paths: Paths) -> Floats:
    """float64 [commodities]: the flow over paths that have channels."""
    real = paths.hops > 0
    return sums(paths.commodity[real], paths.flow[real], problem.demand.size)


def _check_paths(problem: Problem, paths: Paths) -> None:
    """Raise ``ValueError`` unless every path that has channels leads from source to destination over allowed
    channels.
    """
    graph, demand = problem.graph, problem.demand
    real = paths.hops > 0
    begin, end = paths.start[:-1][real], paths.start[1:][real]
    commodity, channel = paths.commodity[real], paths.channel
    if not (paths.flow[real] >= 0).all():
        raise ValueError("flow must not be negative")
    joined = graph.dst[channel[:-1]] == graph.src[channel[1:]]
    joined[end[:-1] - 1] = True  # two paths need not meet
    if not (joined.all() and (graph.src[channel[begin]] == demand.source[commodity]).all()
            and (graph.dst[channel[end - 1]] == demand.destination[commodity]).all()):  # fmt: skip
        raise ValueError("a path does not lead from its source to its destination")
    if problem.paths is not None and not all(
        np.array_equal(getattr(paths, name), getattr(problem.paths, name)) for name in ("first", "start", "channel")
    ):
        raise ValueError("flow on paths that the routes do not allow")
    if problem.via_intermediate:
        _check_via_paths(problem, paths)
    elif problem.restricted:
        _check_allowed(problem, np.repeat(demand.row[commodity], end - begin), channel)


def _check_allowed(problem: Problem, row: np.ndarray, channel: Integers) -> None:
    if not _allowed(problem, problem.demand.target[row], channel).all():
        raise ValueError("flow on a channel that the routes do not allow")


def _allowed(problem: Problem, target: Ints, channel: Integers) -> Bools:
    """bool [entries]: whether each channel is a next hop toward its target."""
    graph = problem.graph
    tail = graph.src[channel]
    return allows(problem.dags.ports, target, tail, channel - graph.out_start[tail])


def _check_via_paths(problem: Problem, paths: Paths) -> None:
    """Raise ``ValueError`` unless every path leads by next hops to some intermediate switch, and from there to its
    target.
    """
    graph, real = problem.graph, np.flatnonzero(paths.hops)
    begin, hops = paths.start[real], paths.hops[real]
    path = np.repeat(np.arange(len(real)), hops)
    position = np.arange(len(path)) - (np.cumsum(hops) - hops)[path]
    target = problem.demand.destination[paths.commodity[real]]
    allowed = np.zeros(len(real), bool)
    for hop in range(int(hops.max(initial=0))):
        # candidate intermediate switch: the tail of the channel ``hop``, or of the last one
        middle = graph.src[paths.channel[begin + np.minimum(hop, hops - 1)]]
        toward = np.where(position < hop, middle[path], target[path])
        whole = np.logical_and.reduceat(_allowed(problem, toward, paths.channel), begin)
        allowed |= whole & np.isin(middle, problem.dags.via)
    if not allowed.all():
        raise ValueError("flow on a path that the routes do not allow")
