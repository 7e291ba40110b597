# SPDX-License-Identifier: Apache-2.0
"""Small scenarios for the fluid tests, and a naive LP that shares no code with the package."""

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic

INF = float("inf")


def table(topology: Topology, matrix) -> Traffic:
    """Traffic of a demand matrix [hosts, hosts], as given."""
    matrix = np.asarray(matrix, float)
    source, target = np.nonzero(matrix)
    start = np.searchsorted(source, np.arange(topology.hosts + 1))
    weight, rate = matrix[source, target], matrix.sum(axis=1)
    return Traffic("table", topology, DestinationRule.TABLE, rate, start=start, column=target, weight=weight)


def all_to_all(topology: Topology) -> Traffic:
    """Every host to every host, itself included."""
    return make("traffic", kind="all_to_all", include_self=True).build(topology)


def minimal(topology: Topology) -> Routes:
    return make("routing", kind="minimal").build(topology)


def scenario(topology: Topology, traffic: Traffic, routes: Routes | None = None) -> Instance:
    return Instance(topology, traffic, routes)


def cycle(n: int) -> Topology:
    arcs = [(i, (i + 1) % n) for i in range(n)]
    return Topology.from_links("cycle", n, arcs).with_hosts(1, INF)


def complete(n: int) -> Topology:
    links = [(u, v) for u in range(n) for v in range(u)]
    return Topology.from_links("complete", n, links).with_hosts(1, INF)


def torus(k: int) -> Topology:
    at = np.arange(k * k).reshape(k, k)
    links = [np.column_stack([at.ravel(), np.roll(at, -1, axis).ravel()]) for axis in (0, 1)]
    return Topology.from_links("torus", k * k, np.concatenate(links)).with_hosts(1, INF)


def hypercube(d: int) -> Topology:
    links = [(v, v ^ 1 << b) for v in range(1 << d) for b in range(d) if v < v ^ 1 << b]
    return Topology.from_links("hypercube", 1 << d, links).with_hosts(1, INF)


def directed_circulant(n: int, steps=(1, 2)) -> Topology:
    arcs = [(i, (i + s) % n) for i in range(n) for s in steps]
    return Topology.from_arcs("circulant", n, arcs).with_hosts(1, INF)


@st.composite
def small_scenarios(draw, host_capacity=INF):
    """A strongly connected random digraph of 3 to 6 switches with uneven capacities and a random demand."""
    n = draw(st.integers(3, 6))
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=8))
    arcs = [(i, (i + 1) % n) for i in range(n)] + [(u, v) for u, v in more if u != v]
    capacity = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(arcs), max_size=len(arcs)))
    topology = Topology.from_arcs("random", n, arcs, capacity=capacity).with_hosts(1, host_capacity)
    entries = draw(st.lists(st.sampled_from([0.0, 0.0, 0.3, 1.0]), min_size=n * n, max_size=n * n))
    matrix = np.array(entries).reshape(n, n)
    matrix[0, 1] = 1.0  # at least one demand
    return scenario(topology, table(topology, matrix / max(matrix.sum(0).max(), matrix.sum(1).max())))


def naive_lp(topology: Topology, matrix, load: float | None = None, most: float = INF, allowed=None) -> float:
    """Theta (or, at a load, the largest total) by a dense LP with one flow per pair of hosts.

    One host per switch. most: host capacity. allowed: function (t, channel) -> whether flow to t may use it.
    """
    n, m = topology.switches, topology.channels
    pairs = [(s, t) for s in range(n) for t in range(n) if matrix[s, t] > 0]
    count = len(pairs)
    columns = count * m + count + 1  # flows, amounts, theta
    upper = np.full(columns, np.inf)
    equal, right, less, bound = [], [], [], []
    for k, (s, t) in enumerate(pairs):
        for v in range(n):
            if v == t:
                continue
            row = np.zeros(columns)
            for a in range(m):
                row[k * m + a] = (topology.src[a] == v) * 1.0 - (topology.dst[a] == v) * 1.0
            row[count * m + k] = -1.0 * (v == s and s != t)
            equal.append(row)
            right.append(0.0)
        for a in range(m):
            if topology.src[a] == t or (allowed is not None and not allowed(t, a)):
                upper[k * m + a] = 0
        if load is None:
            row = np.zeros(columns)
            row[count * m + k], row[-1] = 1, -matrix[s, t]
            equal.append(row)
            right.append(0.0)
        else:
            upper[count * m + k] = load * matrix[s, t]
    for a in range(m):
        row = np.zeros(columns)
        row[[k * m + a for k in range(count)]] = 1
        less.append(row)
        bound.append(topology.capacity[a])
    for end in (0, 1):
        for h in range(n):
            row = np.zeros(columns)
            row[[count * m + k for k in range(count) if pairs[k][end] == h]] = 1
            if most < INF:
                less.append(row)
                bound.append(most)
    gain = np.zeros(columns)
    if load is None:
        gain[-1] = -1
    else:
        gain[count * m : -1] = -1
    between = np.column_stack([np.zeros(columns), upper])
    found = linprog(gain, np.array(less), np.array(bound), np.array(equal), np.array(right), between)
    return -found.fun
