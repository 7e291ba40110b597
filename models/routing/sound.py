# SPDX-License-Identifier: Apache-2.0
"""Whether packets that follow routes arrive, whoever made the routes; nothing is certified, or run, on others.

Of a table of next hops every set that a packet may meet is looked at once, of paths every hop.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from flitlab.models.arrays import Bytes, Integers, Ints
from flitlab.models.jit import njit
from flitlab.models.routing.form import form_faults
from flitlab.models.routing.layers import ends_of
from flitlab.models.routing.next_hops import port_faults, survey_faults, survey_of
from flitlab.models.routing.paths import longest, paths_per_pair
from flitlab.models.routing.ways import PathTable, Routes
from flitlab.models.rules.tables import DIGITS, MAX_PORTS, PATHS, POLARIZED, PROGRESSIVE, VIA
from flitlab.models.topology.distances import distance_counts
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

_SHOWN = 12
"""Ports of a path that are named."""


def sound_routes(topology: Topology, given: Routes, copy: bool = False, by: str = "build") -> Routes:
    """Routes that lead every packet to its destination, with their ``hops_max`` counted.

    Their arrays are as compiled code takes them; ``copy``: so that nobody else can write to them. by: name of the
    method that gave them. Raises ``FaultyError`` that tells one of each sort of
    :func:`~flitlab.models.routing.form.form_faults`, or else of the ways on which packets do not arrive.
    """
    require_type(given, Routes, by)
    if not copy and _sound.get(given) == topology.content_hash:
        return given
    raise_errors(form_faults(topology, given))
    routes = _plain(given, copy)
    faults, most = _followed(topology, routes)
    raise_errors(faults)
    return known_sound(topology, copy_fields(Routes, routes, hops_max=most))


def known_sound(topology: Topology, routes: Routes) -> Routes:
    """The routes themselves, of which it is known that packets that follow them arrive: they need not be followed."""
    _sound[routes] = topology.content_hash
    return routes


_sound: WeakKeyDictionary[Routes, str] = WeakKeyDictionary()
"""Routes that have been followed already, with the hash of the topology: at 10,000 switches that takes seconds."""


def _plain(given: Routes, copy: bool) -> Routes:
    present = {name: array for name in _ARRAYS if (array := getattr(given, name)) is not None}
    arrays: dict[str, Any] = {name: contiguous(array, _ARRAYS[name], copy) for name, array in present.items()}
    numbers: dict[str, Any] = {name: int(getattr(given, name)) for name in _NUMBERS}
    paths = given.paths and PathTable(*(contiguous(part, part.dtype.type, copy) for part in given.paths))
    digits = given.digits and (int(given.digits[0]), int(given.digits[1]))
    policy = None if given.vc_policy is None else int(given.vc_policy)
    return copy_fields(
        Routes, given, **arrays, **numbers, paths=paths, digits=digits, vc_policy=policy,
        deflection=bool(given.deflection),
    )  # fmt: skip


def _followed(topology: Topology, routes: Routes) -> tuple[list[tuple[str, str]], int]:
    """What is wrong with the ways, and, if that is nothing, the channels of the longest."""
    if routes.form == PATHS:
        assert routes.paths is not None
        faults, most = list(_path_faults(topology, routes.paths)), longest(routes.paths)
    elif routes.form == DIGITS:
        faults, most = list(_digit_faults(topology, routes)), _farthest(topology)
    elif routes.form == POLARIZED:
        faults, most = list(_distance_faults(topology, routes)), routes.hops_max
    elif not (faults := list(port_faults(topology, routes))):
        survey = survey_of(topology, routes)
        faults, most = list(survey_faults(routes, survey)), survey.longest(routes.form == VIA)
        most += routes.select == PROGRESSIVE  # the first channel of one way, and then all of another
    return (faults, 0) if faults else (list(_claim_faults(topology, routes, most)), most)


def _claim_faults(topology: Topology, routes: Routes, most: int) -> Errors:
    """A ``hops_max`` that cannot be; one that is merely too large does no harm, as it is counted."""
    legs = 2 if routes.form == VIA or routes.escape is not None else 1
    room = legs * (topology.switches - 1) + (routes.select == PROGRESSIVE)
    if routes.hops_max < most:
        yield "hops_max", f"hops_max is {routes.hops_max}, but the longest route has {most} channels"
    if routes.hops_max > room and routes.form != POLARIZED:  # which only bounds them
        yield "hops_max", f"hops_max is {routes.hops_max}, but no route without a loop has more than {room} channels"


def _farthest(topology: Topology) -> int:
    """Channels between the switches with hosts that are farthest apart."""
    return len(distance_counts(topology, topology.host_count if topology.hosts else None)) - 1


def _digit_faults(topology: Topology, routes: Routes) -> Errors:
    """Next hops computed from numbers are shortest paths of the graph that the numbers describe: is it this one?"""
    assert routes.digits is not None
    degree, shift = routes.digits
    n = topology.switches
    if not 0 <= degree <= MAX_PORTS or (degree == 0) != (n == 1):
        yield "digits", f"digits are of degree {degree}: it must be 1 to {MAX_PORTS}"
        return
    tail, step = np.repeat(np.arange(n), degree), np.tile(np.arange(degree), n)
    arcs = np.column_stack([tail, (tail * degree + step + shift % n) % n])
    if Topology.from_arcs("computed", n, arcs).edge_hash != topology.edge_hash:
        yield "digits", f"the channels are not those from v to {degree} v + {shift} + 0 .. {degree - 1} modulo {n}"


def _distance_faults(topology: Topology, routes: Routes) -> Errors:
    """A packet arrives if it knows distances, and may take as many channels as lie between any two switches."""
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


def _path_faults(topology: Topology, table: PathTable) -> Errors:
    lacking = np.argwhere(paths_per_pair(topology, table) == 0)
    if len(lacking):
        s, t = ends_of(topology)[lacking[0]].tolist()
        yield "no path", with_count(f"there is no path from switch {s} to switch {t}", len(lacking))
    faults, first = _survey_paths(*table[:3], topology.out_start, topology.dst, np.full(topology.switches, -1))
    for sort, text in enumerate(_PATH_FAULTS):
        if faults[sort]:
            name, leads = _path(topology, table, *first[sort].tolist())
            yield text, with_count(f"{name} {text}: {leads}", int(faults[sort]))


_PATH_FAULTS = ("uses a port that a switch does not have", "visits a switch twice", "does not end there")


@njit
def _survey_paths(
    pair_start: Ints, path_start: Ints, port: Bytes, out_start: Integers, dst: Integers, seen: Ints
) -> tuple[Ints, Ints]:
    """Faulty paths: int64 [3], by sort; and of each sort the pair and the number of the first, int64 [3, 2].

    seen: int64 [switches], -1, scratch.
    """
    faults, first = np.zeros(3, np.int64), np.zeros((3, 2), np.int64)
    n = len(out_start) - 1
    for pair in range(len(pair_start) - 1):
        for p in range(pair_start[pair], pair_start[pair + 1]):
            v, fault = pair // n, -1
            seen[v] = p
            for i in range(path_start[p], path_start[p + 1]):
                c = out_start[v] + np.int64(port[i])
                if c >= out_start[v + 1]:
                    fault = 0
                    break
                v = dst[c]
                if seen[v] == p:
                    fault = 1
                    break
                seen[v] = p
            if fault < 0 and v != pair % n:
                fault = 2
            if fault >= 0:
                if faults[fault] == 0:
                    first[fault, 0], first[fault, 1] = pair, p
                faults[fault] += 1
    return faults, first


def _path(topology: Topology, table: PathTable, pair: int, p: int) -> tuple[str, str]:
    """What messages call a path, and where it leads as far as its ports exist."""
    s, t = divmod(pair, topology.switches)
    ports = table.port[table.path_start[p] : table.path_start[p + 1]][:_SHOWN].tolist()
    way = [s]
    for port in ports:
        if port >= topology.out_degree[way[-1]]:
            break
        way.append(int(topology.dst[topology.out_start[way[-1]] + port]))
    return f"a path from switch {s} to switch {t}", f"ports {ports}, switches {way}"
