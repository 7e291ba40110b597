# SPDX-License-Identifier: Apache-2.0
"""Validation of routes: packets that follow them arrive. Only validated routes are certified or run.

Of a table of next hops every set that a packet may use is checked once, of paths every hop.
"""

from weakref import WeakKeyDictionary

import numpy as np

from flitlab.models.arrays import Bytes, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.mappings import Fields
from flitlab.models.routing.form import form_errors
from flitlab.models.routing.next_hops import port_errors, survey_errors, survey_of
from flitlab.models.routing.paths import longest, paths_per_pair
from flitlab.models.routing.route_set import PathTable, Routes
from flitlab.models.rules.tables import MaxPorts, RouteForm, Selection
from flitlab.models.topology.distances import distance_counts, reachable
from flitlab.models.topology.graph import Topology
from flitlab.models.validation import Errors, contiguous, copy_fields, raise_errors, require_type, with_count

_ARRAYS = {
    "ports": np.uint64,
    "leg": np.uint8,
    "escape": np.uint8,
    "layer": np.uint8,
    "group": np.int32,
    "port_threshold": np.uint8,
}
_NUMBERS = ("form", "select", "hops_max", "layers", "threshold", "draws")

_NAMED_PORTS = 12
"""Ports of a path that a message names."""


def validate_routes(topology: Topology, routes: Routes, copy: bool = False, method: str = "build") -> Routes:
    """Routes that lead every packet to its destination, with ``hops_max`` counted.

    The arrays have the types of compiled code.

    Parameters
    ----------
    topology: the network.
    routes: the routes.
    copy: whether to copy the arrays, so that no other code can write to them.
    method: name of the method that returned the routes.

    Returns
    -------
    The routes.

    Raises
    ------
    FaultyError: the first error of each kind, in the form of the routes or else in their paths.
    """
    require_type(routes, Routes, method)
    if not copy and _validated.get(routes) == topology.content_hash:
        return routes
    raise_errors(form_errors(topology, routes))
    routes = _normalised(routes, copy)
    errors, most = _followed_routes(topology, routes)
    raise_errors(errors)
    return mark_validated(topology, copy_fields(Routes, routes, hops_max=most))


def mark_validated(topology: Topology, routes: Routes) -> Routes:
    """Mark routes as validated, so that they are not followed again; returns them.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    _validated[routes] = topology.content_hash
    return routes


_validated: WeakKeyDictionary[Routes, str] = WeakKeyDictionary()
"""Validated routes, with the hash of the topology: at 10,000 switches following them takes seconds."""


def _normalised(routes: Routes, copy: bool) -> Routes:
    present = {name: array for name in _ARRAYS if (array := getattr(routes, name)) is not None}
    arrays: Fields = {name: contiguous(array, _ARRAYS[name], copy) for name, array in present.items()}
    numbers: Fields = {name: int(getattr(routes, name)) for name in _NUMBERS}
    paths = routes.paths and PathTable(*(contiguous(part, part.dtype.type, copy) for part in routes.paths))
    digits = routes.digits and (int(routes.digits[0]), int(routes.digits[1]))
    policy = None if routes.vc_policy is None else int(routes.vc_policy)
    return copy_fields(
        Routes, routes, **arrays, **numbers, paths=paths, digits=digits, vc_policy=policy,
        deflection=bool(routes.deflection),
    )  # fmt: skip


def _followed_routes(topology: Topology, routes: Routes) -> tuple[list[tuple[str, str]], int]:
    """The errors of the paths, and, if there are none, the channels of the longest."""
    if routes.form == RouteForm.PATHS:
        assert routes.paths is not None
        errors, most = list(_path_errors(topology, routes.paths)), longest(routes.paths)
    elif routes.form == RouteForm.DIGITS:
        errors, most = list(_digit_errors(topology, routes)), _farthest(topology)
    elif routes.form == RouteForm.POLARIZED:
        errors, most = list(_distance_errors(topology, routes)), routes.hops_max
    elif not (errors := list(port_errors(topology, routes))):
        survey = survey_of(topology, routes)
        errors, most = list(survey_errors(routes, survey)), survey.longest(routes.form == RouteForm.VIA)
        most += routes.select == Selection.PROGRESSIVE  # the first channel of one way, and then all of another
    return (errors, 0) if errors else (list(_hops_max_errors(topology, routes, most)), most)


def _hops_max_errors(topology: Topology, routes: Routes, most: int) -> Errors:
    """An impossible ``hops_max``; one that is merely too large does no harm, as it is counted."""
    legs = 2 if routes.form == RouteForm.VIA or routes.escape is not None else 1
    longest_loopless = legs * (topology.switches - 1) + (routes.select == Selection.PROGRESSIVE)
    if routes.hops_max < most:
        yield "hops_max", f"hops_max is {routes.hops_max}, but the longest route has {most} channels"
    if routes.hops_max > longest_loopless and routes.form != RouteForm.POLARIZED:  # which only bounds them
        yield (
            "hops_max",
            f"hops_max is {routes.hops_max}, but no route without a loop has more than {longest_loopless} channels",
        )


def _farthest(topology: Topology) -> int:
    """Channels between the switches with hosts that are farthest apart."""
    return len(distance_counts(topology, topology.host_count if topology.hosts else None)) - 1


def _digit_errors(topology: Topology, routes: Routes) -> Errors:
    """Computed next hops are shortest paths of the graph that the numbers describe; check that it is this one."""
    assert routes.digits is not None
    degree, shift = routes.digits
    n = topology.switches
    if not 0 <= degree <= MaxPorts.MASK or (degree == 0) != (n == 1):
        yield "digits", f"digits are of degree {degree}: it must be 1 to {MaxPorts.MASK}"
        return
    tail, step = np.repeat(np.arange(n), degree), np.tile(np.arange(degree), n)
    arcs = np.column_stack([tail, (tail * degree + step + shift % n) % n])
    if Topology.from_arcs("computed", n, arcs).edge_hash != topology.edge_hash:
        yield "digits", f"the channels are not those from v to {degree} v + {shift} + 0 .. {degree - 1} modulo {n}"


def _distance_errors(topology: Topology, routes: Routes) -> Errors:
    """A packet arrives if it knows distances, and may take as many channels as the diameter."""
    leg = routes.leg
    assert leg is not None
    n = topology.switches
    onward = np.zeros((n, n), np.int64)
    if n > 1:  # every switch has a channel
        onward = np.minimum.reduceat(leg[topology.dst].astype(np.int64), topology.out_start[:-1]) + 1
    np.fill_diagonal(onward, 0)
    if not np.array_equal(leg, onward):
        yield "leg", "leg must be the hops between switches"
    elif routes.hops_max < leg.max(initial=0):
        yield "hops_max", f"hops_max is {routes.hops_max}: it must be at least the diameter, {leg.max()}"


def _path_errors(topology: Topology, table: PathTable) -> Errors:
    missing = paths_per_pair(topology, table) == 0
    if missing.any():
        missing &= reachable(topology)[np.ix_(topology.src_switches, topology.dst_switches)]
    lacking = np.argwhere(missing)
    if len(lacking):
        s, t = topology.src_switches[lacking[0, 0]], topology.dst_switches[lacking[0, 1]]
        yield "no path", with_count(f"there is no path from switch {s} to switch {t}", len(lacking))
    counts, first = _survey_paths(*table[:3], topology.out_start, topology.dst, np.full(topology.switches, -1))
    for kind, text in enumerate(_PATH_ERRORS):
        if counts[kind]:
            name, leads = _path_text(topology, table, *first[kind].tolist())
            yield text, with_count(f"{name} {text}: {leads}", int(counts[kind]))


_PATH_ERRORS = ("uses a port that a switch does not have", "visits a switch twice", "does not end there")


@njit
def _survey_paths(
    pair_start: Ints, path_start: Ints, port: Bytes, out_start: Integers, dst: Integers, seen: Ints
) -> tuple[Ints, Ints]:
    """Invalid paths: int64 [3], their number by kind; int64 [3, 2], pair and number of the first of each.

    seen: int64 [switches], -1, scratch.
    """
    counts, first = np.zeros(3, np.int64), np.zeros((3, 2), np.int64)
    n = len(out_start) - 1
    for pair in range(len(pair_start) - 1):
        for p in range(pair_start[pair], pair_start[pair + 1]):
            v, kind = pair // n, -1
            seen[v] = p
            for i in range(path_start[p], path_start[p + 1]):
                c = out_start[v] + np.int64(port[i])
                if c >= out_start[v + 1]:
                    kind = 0
                    break
                v = dst[c]
                if seen[v] == p:
                    kind = 1
                    break
                seen[v] = p
            if kind < 0 and v != pair % n:
                kind = 2
            if kind >= 0:
                if counts[kind] == 0:
                    first[kind, 0], first[kind, 1] = pair, p
                counts[kind] += 1
    return counts, first


def _path_text(topology: Topology, table: PathTable, pair: int, p: int) -> tuple[str, str]:
    """The name of a path in messages, and where it leads as far as its ports exist."""
    s, t = divmod(pair, topology.switches)
    ports = table.port[table.path_start[p] : table.path_start[p + 1]][:_NAMED_PORTS].tolist()
    switches = [s]
    for port in ports:
        if port >= topology.out_degree[switches[-1]]:
            break
        switches.append(int(topology.dst[topology.out_start[switches[-1]] + port]))
    return f"a path from switch {s} to switch {t}", f"ports {ports}, switches {switches}"
