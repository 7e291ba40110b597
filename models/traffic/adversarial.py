# SPDX-License-Identifier: Apache-2.0
"""Adversarial traffic: the worst shift for minimal routing on a structured topology."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from flitlab.models.arrays import Floats, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.paths.search import search_to
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.galois import field
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts
from flitlab.models.traffic.units import Units

ROUNDING = 1e-9
"""Relative difference below which loads are equal."""


@register("traffic", "adversarial")
class Adversarial(TrafficSpec):
    """Every switch sends to one other: the natural shift of the topology with the greatest channel load.

    The k-th host of a switch sends to the k-th host of the destination switch. Shifts, by ``topology``:

    *dragonfly*: to the router at the same place of the i-th next group. *torus*, *hyperx*,
    *flattened_butterfly*: i further in one coordinate, modulo its extent, i at most half of it. *slim_fly*: two hops
    on, (0, x, y) to (0, x + i, y + i x) and (1, m, c) to (1, m + i, c - i (m + i)) in the field; the path between them
    is the only one, and every channel that is used is the first one for a switch and the second one for another.

    The load is that of the channels between switches, over their capacities, if every switch splits equally over the
    next hops of shortest paths; on a dragonfly, of those with one global channel. Of equal shifts it is the one of
    least i, and of these the one in the last coordinate. ``notes`` has the dimension (``along``), i (``by``) and the
    largest load at load 1 (``load``), so that minimal routing carries 1 / ``load``.

    On an intact Slim Fly or two-dimensional HyperX no traffic has a greater channel load. Elsewhere other traffic may,
    in a three-dimensional HyperX far greater. Needs the same number of hosts at every switch, and at most 16,384
    switches.

    Example: ``traffic: {kind: adversarial}``

    Source: dragonfly: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19; slim fly: Besta and Hoefler, SC 2014,
    doi:10.1109/SC.2014.34; torus (tornado): Dally and Towles, Principles and Practices of Interconnection Networks,
    2004, section 3.2.
    """

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        shifts_of = SHIFTS.get(topology.kind)
        if shifts_of is None:
            raise SpecError(f"supports the topologies {', '.join(SHIFTS)}, not {topology.kind}", key="kind")
        count = topology.host_count
        if count.min() < count.max():
            message = f"needs the same number of hosts at every switch, not {count.min()} to {count.max()}"
            raise SpecError(message, key="kind")
        units = Units.of(topology)
        units.validate_size()
        shifts = list(shifts_of(topology))
        loads = units.size * largest_loads(topology, np.array([shift.target for shift in shifts]))
        worst = int(np.argmax(loads >= loads.max() * (1 - ROUNDING)))
        notes = {"along": shifts[worst].along, "by": shifts[worst].by, "load": float(loads[worst])}
        return fixed_traffic(self.kind, topology, units.hosts_of(shifts[worst].target), notes=notes)


@dataclass(frozen=True, eq=False)
class Shift:
    """A permutation of switches: each sends to ``target`` (int64 [switches]), ``by`` steps ``along`` a dimension."""

    along: str
    by: int
    target: np.ndarray


def _require_complete(topology: Topology, complete: bool) -> None:
    if not complete:
        message = f"needs all switches of the {topology.kind}, but failures have removed some"
        raise SpecError(message, key="kind")


def group_shifts(topology: Topology) -> Iterator[Shift]:
    """Yield the shifts of a dragonfly's groups, to all other groups."""
    groups, size = topology.notes["groups"], topology.notes["group_size"]
    _require_complete(topology, topology.switches == groups * size)
    for by in range(1, groups):
        yield Shift("groups", by, (np.arange(topology.switches) + by * size) % topology.switches)


def coordinate_shifts(topology: Topology) -> Iterator[Shift]:
    """Yield the shifts of a torus or HyperX in one dimension, by at most half its extent; longer ones are mirror
    images.
    """
    dims = topology.grid.dims if topology.grid else topology.notes.get("dims", [])
    _require_complete(topology, topology.switches == prod(dims))
    switches = np.arange(topology.switches).reshape(dims)
    for by in range(1, max(dims) // 2 + 1):
        for axis in reversed(range(len(dims))):
            if by <= dims[axis] // 2:
                yield Shift(f"dimension {axis}", by, np.roll(switches, -by, axis).ravel())


def two_hop_shifts(topology: Topology) -> Iterator[Shift]:
    """Yield the shifts of a Slim Fly by two hops along cycles (0, x, y), (1, x, y - x x), (0, x + i, ..), .. for i not
    0.
    """
    q = isqrt(topology.switches // 2)
    _require_complete(topology, topology.switches == 2 * q * q)
    f = field(q)
    x, y = np.indices((q, q))
    for by in range(1, q):
        shifted = f.sum[x, by]
        first = shifted * q + f.sum[y, f.product[by, x]]
        second = q * q + shifted * q + f.sum[y, f.negative[f.product[by, shifted]]]
        yield Shift("columns, two hops on", by, np.concatenate([first.ravel(), second.ravel()]))


SHIFTS: dict[str, Callable[[Topology], Iterator[Shift]]] = {
    "dragonfly": group_shifts, "slim_fly": two_hop_shifts, "hyperx": coordinate_shifts,
    "flattened_butterfly": coordinate_shifts, "torus": coordinate_shifts,
}  # fmt: skip
"""Kind of topology -> its shifts, those of least ``by`` first."""


def largest_loads(topology: Topology, targets: Ints) -> Floats:
    """Compute the greatest channel load over capacity of permutations of switches under minimal routing.

    Every switch sends 1, divided evenly at every switch over the next hops of shortest paths; in a dragonfly, of the
    shortest paths with one global channel, between different groups.

    Parameters
    ----------
    topology: the network.
    targets: int64 [permutations, switches], the destination of each switch.

    Returns
    -------
    float64 [permutations].

    Raises
    ------
    SpecError: a pair has no such path.
    """
    graph, channel = _once_between_groups(topology) if topology.kind == "dragonfly" else (topology, None)
    if channel is None:
        channel = np.arange(topology.channels)
    loads, source, target = _largest_loads(
        graph.out_start, graph.dst, graph.in_start, graph.src[graph.in_channels], channel, targets,
        graph.switches - topology.switches, topology.capacity,
    )  # fmt: skip
    if source >= 0:
        u, v = map(switch_names(topology).label, (source, target))
        raise SpecError(f"no path over one global channel leads from switch {u} to switch {v}", key="kind")
    return loads


def _once_between_groups(topology: Topology) -> tuple[Topology, np.ndarray]:
    """Return two copies of a dragonfly, and the original channel of each channel.

    Local channels are in both copies; global channels lead from the first to the second. So every path from the first
    copy to the second crosses exactly one global channel.
    """
    n, group = topology.switches, np.arange(topology.switches) // topology.notes["group_size"]
    inside = group[topology.src] == group[topology.dst]
    local = np.flatnonzero(inside)
    src = np.concatenate([topology.src, topology.src[local] + n])
    dst = np.concatenate([topology.dst + n * ~inside, topology.dst[local] + n])
    order = np.lexsort((dst, src))
    graph = Topology.from_arcs("copies", 2 * n, np.column_stack([src, dst])[order])
    return graph, np.concatenate([np.arange(topology.channels), local])[order]


@njit
def _largest_loads(
    out_start: Integers,
    dst: Integers,
    in_start: Integers,
    in_tail: Integers,
    channel: Integers,
    targets: Integers,
    target_offset: int,
    capacity: Floats,
) -> tuple[Floats, int, int]:
    """Compute the greatest load over capacity of each permutation, and a pair without a path or (-1, -1).

    Parameters
    ----------
    out_start, dst, in_start, in_tail: the graph, as in the topology.
    channel: int64 [channels of the graph], the channel of the topology that each represents.
    targets: int64 [permutations, switches].
    target_offset: difference of a switch's vertex as a destination and as a source.
    capacity: float64 [channels of the topology].
    """
    vertices, switches = len(out_start) - 1, targets.shape[1]
    hops = np.empty((switches, vertices), np.int16)
    distance, order = np.empty(vertices, np.int64), np.empty(vertices, np.int64)
    for t in range(switches):
        search_to(t + target_offset, in_start, in_tail, distance, order)
        hops[t] = distance
    flow = np.zeros(vertices)
    largest = np.zeros(len(targets))
    for k in range(len(targets)):
        load = np.zeros(len(capacity))
        for s in range(switches):
            t = targets[k, s]
            if hops[t, s] < 0:
                return largest, s, t
            _add_load(s, hops[t], out_start, dst, channel, order, flow, load)
        largest[k] = (load / capacity).max()
    return largest, -1, -1


@njit
def _add_load(
    source: int,
    hops: Integers,
    out_start: Integers,
    dst: Integers,
    channel: Integers,
    order: Integers,
    flow: Floats,
    load: Floats,
) -> None:
    """Add to ``load`` the load of one unit from the source to the vertex where ``hops`` is 0.

    Parameters
    ----------
    source: a vertex.
    hops: [vertices], distance to the destination.
    out_start, dst, channel: as in :func:`_largest_loads`.
    order, flow: int64 and float64 [vertices], scratch; ``flow`` is 0 before and after.
    load: float64 [channels of the topology].
    """
    order[0], flow[source] = source, 1.0
    done, queued = 0, 1
    while done < queued:  # farthest first, so that all transit has arrived
        v = order[done]
        done += 1
        next_hops = 0
        for c in range(out_start[v], out_start[v + 1]):
            next_hops += hops[v] > 0 and hops[dst[c]] == hops[v] - 1
        if next_hops > 0:
            share = flow[v] / next_hops
            for c in range(out_start[v], out_start[v + 1]):
                u = dst[c]
                if hops[u] != hops[v] - 1:
                    continue
                if flow[u] == 0.0:
                    order[queued] = u
                    queued += 1
                flow[u] += share
                load[channel[c]] += share
        flow[v] = 0.0
