"""Checks of a topology family or a routing of one's own, which say in words what is wrong with it.

    from models.testing import check_routing, check_topology
    print(check_topology(MyFamily(kind="my_family", n=64)))  # [] if nothing is wrong

Both list one problem of each sort, with the switches that show it. They look at one example of a component: check
several sizes, and odd ones.
"""

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import yaml
from pydantic import ValidationError

from models.registry import Spec, SpecError, make
from models.routing.certificate import certify
from models.routing.layers import ends_of
from models.routing.paths import longest, missing_pair
from models.routing.routes import (
    ADAPTIVE,
    DATELINE_CROSSING,
    DATELINE_ENTRY,
    DIGITS,
    ESCAPE,
    HASH,
    LAYERED,
    MAX_PORTS,
    PATHS,
    RANDOM,
    TABLE,
    VIA,
    Routes,
    RoutingSpec,
)
from models.rules.route import next_hops
from models.topology.graph import Topology
from models.topology.spec import TopologySpec

MOST_VCS = 64
"""VCs that the engines can be given."""

BLOCK = 1 << 17
"""Paths looked at together."""

Found = Iterator[tuple[str, str]]
"""Problems as (sort, text)."""


def check_topology(given: TopologySpec | Topology) -> list[str]:
    """What is wrong with a topology, or with the family that builds it; an empty list if nothing is.

    Channels in order, pairs of reverse channels, connection, hosts, capacities, delays, grid, tiers, notes; of a
    family also its documentation and that it builds the same every time.
    """
    if isinstance(given, Topology):
        return _one_of_each(_graph_problems(given))
    found = list(_documentation_problems(given, "topology"))
    built, problem = _build(given, Topology)
    if problem:
        return _one_of_each([*found, ("build", problem)])
    again, _ = _build(given, Topology)
    if again is None or replace(again).content_hash != replace(built).content_hash:
        found.append(("again", "build() gives another topology the second time: draw only from a seed of the spec"))
    return _one_of_each([*found, *_graph_problems(built)])


def check_routing(spec: RoutingSpec, topology: Topology, vcs: int | None = None) -> list[str]:
    """What is wrong with a routing on a topology; an empty list if nothing is.

    Whatever port of those allowed is taken, a packet between any two switches with hosts must reach its destination,
    within ``hops_max`` channels. Also: arrays of the right shape, documentation, the same routes every time, and a
    certificate that no deadlock is possible: with ``vcs`` VCs, or, by default, with as many as it takes.
    """
    found = list(_documentation_problems(spec, "routing"))
    before = replace(topology).content_hash
    routes, problem = _build(spec, Routes, topology)
    if problem:
        return _one_of_each([*found, ("build", problem)])
    again, _ = _build(spec, Routes, topology)
    if again is None or (again.content_hash, again.hops_max) != (routes.content_hash, routes.hops_max):
        found.append(("again", "build() gives other routes the second time: draw only from a seed of the spec"))
    if replace(topology).content_hash != before:
        found.append(("changes", "build() changes the topology; copy the arrays that you write to"))
    shapes = list(_shape_problems(topology, routes))
    wrong = shapes or list(_route_problems(topology, routes))
    if not wrong:  # a certificate speaks of routes that arrive
        wrong = list(_certificate_problems(topology, routes, vcs))
    return _one_of_each(found + wrong)


def _one_of_each(found) -> list[str]:
    """The first text of each sort, with the number of others."""
    sorts: dict[str, list[str]] = {}
    for sort, text in found:
        sorts.setdefault(sort, []).append(text)
    return [t[0] if len(t) == 1 else f"{t[0]} (and {len(t) - 1} more of this sort)" for t in sorts.values()]


def _build(spec: Spec, wanted: type, *arguments):
    """(what ``spec.build`` gives, None), or (None, why it gives nothing of use)."""
    try:
        built = spec.build(*arguments)  # type: ignore[attr-defined]
    except SpecError as error:
        place = f"{error.key}: " if error.key else ""
        return None, f"build() refuses: {place}{error}"
    except Exception as error:  # a stranger's code may raise anything
        return None, (
            f"build() raises {type(error).__name__}: {error}; parameters that cannot be served should raise "
            "models.registry.SpecError"
        )
    if not isinstance(built, wanted):
        return None, f"build() must return a {wanted.__name__}, not {type(built).__name__}"
    return built, None


def _documentation_problems(spec: Spec, category: str) -> Found:
    """The class documentation is what ``simrun show`` prints: it needs an example and a source."""
    text = inspect.getdoc(type(spec)) or ""
    if not text or "Source" not in text:
        yield "source", f'the documentation of {type(spec).__name__} needs a line "Source: ..."'
    examples = re.findall(rf"Example: ``({category}: .+?)``", text, re.DOTALL)
    if not examples:
        yield "example", (
            f'the documentation of {type(spec).__name__} needs a line "Example: ``{category}: {{kind: {spec.kind}}}``"'
        )
    for example in examples:
        try:
            made = make(category, **yaml.safe_load(example)[category])
        except (SpecError, ValidationError, yaml.YAMLError, TypeError, KeyError) as error:
            yield "example works", f"the example {example!r} does not work: {error}"
            continue
        if made.kind != spec.kind:
            yield "example kind", f"the example {example!r} is of another kind than {spec.kind!r}"


# Topologies


def _graph_problems(topology: Topology) -> Found:
    n, count = topology.switches, len(topology.src)
    arrays = {
        "src": (topology.src, np.integer), "dst": (topology.dst, np.integer), "reverse": (topology.reverse, np.integer),
        "delay": (topology.delay, np.integer), "capacity": (topology.capacity, np.floating),
    }  # fmt: skip
    wrong = False
    for name, (array, kind) in arrays.items():
        if np.shape(array) != (count,) or not np.issubdtype(np.asarray(array).dtype, kind):
            wrong = True
            yield f"array {name}", f"{name} must be a {kind.__name__} array with one entry for each channel"
    if n < 1 or wrong:
        if n < 1:
            yield "switches", "there must be a switch"
        return
    src, dst = topology.src, topology.dst
    outside = np.flatnonzero((src < 0) | (src >= n) | (dst < 0) | (dst >= n))
    if len(outside):
        c = outside[0]
        yield "ends", f"channel {c}, {src[c]} -> {dst[c]}, ends outside of switches 0 to {n - 1}"
        return
    loops = np.flatnonzero(src == dst)
    if len(loops):
        yield "loops", f"channel {loops[0]} leads from switch {src[loops[0]]} to itself: leave it out"
    falls = np.flatnonzero(np.diff(src * n + dst) < 0)
    if len(falls):
        c = falls[0]
        yield "order", (
            f"channels must be sorted by (src, dst): {src[c]} -> {dst[c]} stands before {src[c + 1]} -> {dst[c + 1]}; "
            "Topology.from_links and from_arcs sort them"
        )
    else:  # what follows finds channels by their order
        if (pair := topology.unreachable_pair()) is not None:
            yield "connected", f"not strongly connected: no path from switch {pair[0]} to switch {pair[1]}"
    yield from _reverse_problems(topology)
    yield from _value_problems(topology)
    yield from _host_problems(topology)
    yield from _note_problems(topology)


def _reverse_problems(topology: Topology) -> Found:
    reverse, count = topology.reverse, topology.channels
    outside = np.flatnonzero((reverse < -1) | (reverse >= count))
    if len(outside):
        yield "reverse", f"reverse of channel {outside[0]} is {reverse[outside[0]]}: neither a channel nor -1"
        return
    paired = np.flatnonzero(reverse >= 0)
    back = reverse[paired]
    astray = paired[(topology.src[back] != topology.dst[paired]) | (topology.dst[back] != topology.src[paired])]
    for c in astray:
        yield "reverse ends", (
            f"channel {c} is {topology.src[c]} -> {topology.dst[c]}, but its reverse, channel {reverse[c]}, is "
            f"{topology.src[reverse[c]]} -> {topology.dst[reverse[c]]}"
        )
    for c in paired[reverse[back] != paired]:
        yield "reverse twice", (
            f"the reverse of channel {c} is channel {reverse[c]}, and the reverse of that is {reverse[reverse[c]]}: "
            "each must name the other"
        )


def _value_problems(topology: Topology) -> Found:
    for c in np.flatnonzero(~((topology.capacity > 0) & np.isfinite(topology.capacity))):
        yield "capacity", f"capacity of channel {c} is {topology.capacity[c]}: it must be positive and finite"
    for c in np.flatnonzero(topology.delay < 0):
        yield "delay", f"delay of channel {c} is {topology.delay[c]}: it must be 0 or more"


def _host_problems(topology: Topology) -> Found:
    at = np.asarray(topology.host_switch)
    if at.ndim != 1 or not np.issubdtype(at.dtype, np.integer):
        yield "hosts", "host_switch must be an integer array with the switch of each host"
        return
    for host in np.flatnonzero((at < 0) | (at >= topology.switches)):
        yield "host place", f"host {host} is at switch {at[host]}, outside of 0 to {topology.switches - 1}"
    for host in np.flatnonzero(np.diff(at) < 0):
        yield "host order", (
            f"hosts must be numbered switch by switch: host {host} is at switch {at[host]}, host {host + 1} at switch "
            f"{at[host + 1]}; Topology.with_hosts numbers them"
        )
    if not topology.host_capacity > 0:
        yield "host capacity", f"host_capacity is {topology.host_capacity}: it must be positive"


def _note_problems(topology: Topology) -> Found:
    n, grid = topology.switches, topology.grid
    try:
        json.dumps(topology.notes)
    except TypeError as error:
        yield "notes", f"notes must be plain numbers, texts, lists and mappings ({error}); use int(), float(), tolist()"
    if grid is not None:
        place = np.asarray(grid.coordinates)
        if place.shape != (n, len(grid.dims)):
            yield "grid", f"grid.coordinates has shape {place.shape}, not ({n}, {len(grid.dims)})"
        elif n != int(np.prod(grid.dims)):
            yield "grid", f"a grid of {' x '.join(map(str, grid.dims))} has {np.prod(grid.dims)} switches, not {n}"
        elif (place < 0).any() or (place >= np.array(grid.dims)).any() or len(np.unique(place, axis=0)) < n:
            yield "grid", "grid.coordinates must lie inside of grid.dims and differ from switch to switch"
    following = 0
    for name, first, count in topology.notes.get("tiers", []):
        if first != following:
            yield "tiers", f"tier {name!r} starts at switch {first}, the one before ends at {following - 1}"
        following = first + count
    if topology.notes.get("tiers") and following != n:
        yield "tiers", f"the tiers hold {following} switches, the topology {n}"


# Routings


def _shape_problems(topology: Topology, routes: Routes) -> Found:
    """Arrays that the compiled code could not read as they are."""
    n, form = topology.switches, routes.form
    square = {"ports": (routes.ports, np.uint64, form in (TABLE, VIA)), "leg": (routes.leg, np.uint8, form == VIA),
              "escape": (routes.escape, np.uint8, routes.vc_policy == ESCAPE)}  # fmt: skip
    if form not in (TABLE, PATHS, VIA, DIGITS):
        yield "form", f"form is {form}: it must be TABLE, PATHS, VIA or DIGITS of models.routing.routes"
    for name, (array, dtype, needed) in square.items():
        if needed and (array is None or array.shape != (n, n) or array.dtype != dtype):
            now = "None" if array is None else f"{array.dtype} of shape {array.shape}"
            yield f"array {name}", f"{name} must be {dtype.__name__} of shape ({n}, {n}), and is {now}"
    degree = int(topology.out_degree.max(initial=0))
    if form != PATHS and degree > MAX_PORTS:
        yield "degree", f"a set holds {MAX_PORTS} ports, and a switch has {degree}; use PATHS, or refuse with SpecError"
    if form == DIGITS and routes.digits is None:
        yield "digits", "form DIGITS needs digits: (degree, shift)"
    if form in (PATHS, VIA) and routes.select == ADAPTIVE:
        yield "select", "select ADAPTIVE serves TABLE and DIGITS only: the others draw once, at the source"
    if form != VIA and routes.select not in (RANDOM, HASH, ADAPTIVE):
        yield "select", f"select is {routes.select}: it must be RANDOM, HASH or ADAPTIVE of models.routing.routes"
    if routes.deflection and form != TABLE:
        yield "deflection", "deflection needs form TABLE"
    if form == PATHS:
        yield from _path_shape_problems(topology, routes)
    if routes.vc_policy == LAYERED:
        units = len(routes.paths.path_start) - 1 if routes.paths else n * n
        if routes.layer is None or routes.layer.shape != (units,) or routes.layer.dtype != np.uint8:
            yield "layer", f"layer must be uint8 of shape ({units},): one for each {'path' if routes.paths else 'pair'}"
        elif routes.layers < 1 or int(routes.layer.max(initial=0)) >= routes.layers:
            yield "layer", f"layer {routes.layer.max(initial=0)} occurs, but layers is {routes.layers}"
    if routes.group is not None and (routes.group.shape != (n,) or routes.group.dtype != np.int32):
        yield "group", f"group must be int32 of shape ({n},): one for each switch"


def _path_shape_problems(topology: Topology, routes: Routes) -> Found:
    table = routes.paths
    if table is None:
        yield "paths", "form PATHS needs paths: a PathTable"
        return
    ends = {"pair_start": (table.pair_start, topology.switches**2, len(table.path_start) - 1, "paths"),
            "path_start": (table.path_start, len(table.path_start) - 1, len(table.port), "ports")}  # fmt: skip
    for name, (array, count, total, what) in ends.items():
        if array.dtype != np.int64 or len(array) != count + 1 or count < 0:
            yield name, f"{name} must be int64 with {count + 1} entries, and is {array.dtype} with {len(array)}"
        elif array[0] != 0 or array[-1] != total or (np.diff(array) < 0).any():
            yield name, f"{name} must rise from 0 to the number of {what}, {total}"
    if table.port.dtype != np.uint8:
        yield "port", f"port must be uint8, and is {table.port.dtype}"


def _route_problems(topology: Topology, routes: Routes) -> Found:
    if routes.form == PATHS:
        yield from _path_problems(topology, routes)
        return
    masks = routes.ports if routes.form != DIGITS else _computed_masks(topology, routes)
    if routes.deflection and (topology.in_degree != topology.out_degree).any():
        yield "deflection", "deflection needs as many channels into every switch as out of it"
    if routes.escape is not None:
        escape = np.uint64(1) << routes.escape.astype(np.uint64)
        np.fill_diagonal(escape, 0)
        yield from _table_problems(topology, routes, escape, "escape channel")
    yield from _table_problems(topology, routes, masks, "next hop")


def _computed_masks(topology: Topology, routes: Routes) -> np.ndarray:
    """The sets of ports uint64 [t, v] that are computed from the numbers of the switches."""
    r, n = routes.tables(topology), topology.switches
    masks = np.zeros((n, n), np.uint64)
    for t in range(n):
        for v in range(n):
            if v != t:
                masks[t, v] = next_hops(r, 0, 0, v, t)
    return masks


def _table_problems(topology: Topology, routes: Routes, masks: np.ndarray, what: str) -> Found:
    """Problems of next hops ``masks`` [t, v]; ``what`` they are called."""
    degree = topology.out_degree.astype(np.uint64)
    beyond = (degree < 64) & (masks >> np.minimum(degree, np.uint64(63)) > 0)
    for t, v in np.argwhere(beyond).tolist():
        port = int(masks[t, v]).bit_length() - 1
        yield f"{what} beyond", f"{what} of switch {v} to switch {t} is port {port}, and it has {degree[v]} of them"
    if beyond.any():
        return
    if routes.form != DIGITS and (inside := np.flatnonzero(np.diagonal(masks))).size:
        v = inside[0]
        yield f"{what} at target", f"ports[{v}, {v}] must be 0: a packet for switch {v} leaves the network there"
    place = (np.arange(topology.channels) - topology.out_start[topology.src]).astype(np.uint64)
    ends, deepest, known = ends_of(topology), 0, True
    for t in ends.tolist():
        allowed = (masks[t, topology.src] >> place & np.uint64(1)).astype(bool) & (topology.src != t)
        hops = _longest_to(topology, allowed, t)
        deepest = max(deepest, int(hops.max()))
        for sort, text in _target_problems(topology, routes, allowed, hops, ends, t):
            known = False
            yield f"{what} {sort}", f"{what}s to switch {t}: {text}"
    legs = 2 if routes.form == VIA else 1
    if known and routes.escape is None and legs * deepest < routes.hops_max:
        yield "hops_max", (
            f"hops_max is {routes.hops_max}, but the longest route has {legs * deepest} channels: hop-indexed VCs "
            "would need more VCs than they use"
        )


def _longest_to(topology: Topology, allowed: np.ndarray, t: int) -> np.ndarray:
    """int64 [switches]: the most channels that a packet takes to t, or to where none is allowed; -1: there is a loop.

    allowed: bool [channels]. A switch is done a round after the last of the switches that it leads to.
    """
    n = topology.switches
    left = np.bincount(topology.src[allowed], minlength=n)
    hops = np.where(left == 0, 0, -1)
    done, round_ = left == 0, 0
    while done.any():
        round_ += 1
        left -= np.bincount(topology.src[allowed & done[topology.dst]], minlength=n)
        done = (left == 0) & (hops < 0)
        hops[done] = round_
    return hops


def _target_problems(
    topology: Topology, routes: Routes, allowed: np.ndarray, hops: np.ndarray, ends: np.ndarray, t: int
) -> Found:
    """Whether packets for t arrive; hops: of :func:`_longest_to`."""
    sources = ends[ends != t]
    reached = _reached(topology, allowed, sources)
    stuck = np.flatnonzero(reached & (np.bincount(topology.src[allowed], minlength=topology.switches) == 0))
    stuck = stuck[stuck != t]
    if len(stuck):
        yield "missing", f"a packet at switch {stuck[0]} has none"
    if (circling := np.flatnonzero(reached & (hops < 0))).size:
        yield "loop", f"they go round in a loop: {_loop(topology, allowed & (hops[topology.dst] < 0), circling[0])}"
    if len(stuck) or circling.size or not len(sources):
        return
    farthest = int(sources[np.argmax(hops[sources])])
    if hops[farthest] > routes.hops_max // (2 if routes.form == VIA else 1):
        yield "too long", (
            f"a packet from switch {farthest} may take {hops[farthest]} channels, but hops_max is {routes.hops_max}"
            + (" for both legs" if routes.form == VIA else "")
        )
    if routes.form == VIA:
        tail, head = topology.src[allowed], topology.dst[allowed]
        uneven = np.flatnonzero(reached[tail] & (hops[tail] != hops[head] + 1))
        if len(uneven):
            yield "uneven", f"from switch {tail[uneven[0]]} they differ in length; the routes of a leg must not"
        assert routes.leg is not None
        for s in sources[routes.leg[sources, t] != hops[sources]]:
            yield "leg", f"leg[{s}, {t}] is {routes.leg[s, t]}, and the route takes {hops[s]} channels"


def _reached(topology: Topology, allowed: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """bool [switches]: where packets from the sources come over allowed channels."""
    reached = np.zeros(topology.switches, bool)
    reached[sources] = True
    tail, head = topology.src[allowed], topology.dst[allowed]
    while not reached[head[reached[tail]]].all():
        reached[head[reached[tail]]] = True
    return reached


def _loop(topology: Topology, allowed: np.ndarray, start: int) -> str:
    """A loop of allowed channels that is reached from a switch, each switch of which has one of them."""
    onward = np.zeros(topology.switches, np.int64)
    onward[topology.src[allowed]] = topology.dst[allowed]
    way = [int(start)]
    while (v := int(onward[way[-1]])) not in way:
        way.append(v)
    return " -> ".join(map(str, [*way[way.index(v) :], v]))


def _path_problems(topology: Topology, routes: Routes) -> Found:
    table, n = routes.paths, topology.switches
    assert table is not None
    if (pair := missing_pair(topology, table)) is not None:
        yield "no path", f"there is no path from switch {pair[0]} to switch {pair[1]}"
    pairs = np.repeat(np.arange(n * n), np.diff(table.pair_start))
    lengths = np.diff(table.path_start)
    sound = True
    for first in range(0, len(pairs), BLOCK):
        block = slice(first, first + BLOCK)
        start, length = table.path_start[:-1][block], lengths[block]
        visited, beyond = _walk(topology, table.port, pairs[block] // n, start, length)
        ordered = np.sort(visited, axis=1)
        loops = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
        end = visited[np.arange(len(length)), length]
        target = pairs[block] % n
        for sort, which, text in (
            ("port beyond", beyond, "uses a port that a switch does not have"),
            ("path end", ~beyond & (end != target), "does not end there"),
            ("path loop", ~beyond & (end == target) & loops, "visits a switch twice"),
        ):
            for p in np.flatnonzero(which).tolist():
                sound = False
                s, t = divmod(int(pairs[first + p]), n)
                ports = table.port[start[p] : start[p] + length[p]].tolist()
                switches = [v for v in visited[p].tolist() if v >= 0]
                yield sort, f"a path from switch {s} to switch {t} {text}: ports {ports}, switches {switches}"
    if sound and longest(table) != routes.hops_max:
        yield "hops_max", f"hops_max is {routes.hops_max}, but the longest path has {longest(table)} channels"


def _walk(topology: Topology, port: np.ndarray, source: np.ndarray, start: np.ndarray, length: np.ndarray):
    """The switches of each path, int64 [paths, longest + 1], -1 after its end; bool, whether a port does not exist."""
    visited = np.full((len(start), int(length.max(initial=0)) + 1), -1)
    visited[:, 0] = source
    beyond = np.zeros(len(start), bool)
    for h in range(visited.shape[1] - 1):
        going = np.flatnonzero((length > h) & ~beyond)
        at, by = visited[going, h], port[start[going] + h].astype(np.int64)
        exists = by < topology.out_degree[at]
        beyond[going[~exists]] = True
        visited[going[exists], h + 1] = topology.dst[topology.out_start[at[exists]] + by[exists]]
    return visited, beyond


def _certificate_problems(topology: Topology, routes: Routes, vcs: int | None) -> Found:
    dateline = routes.vc_policy in (DATELINE_ENTRY, DATELINE_CROSSING)
    enough = 2 if dateline else min(MOST_VCS, max(4, routes.hops_max, routes.layers))
    try:
        certify(topology, routes, vcs or enough)
    except SpecError as error:
        yield "certificate", f"no certificate with {vcs or enough} VCs: {error}"
