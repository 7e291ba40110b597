# SPDX-License-Identifier: Apache-2.0
"""Whether a topology is one: channels in order between switches that exist, hosts, capacities."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from flitlab.models.arrays import LARGEST, LEAST
from flitlab.models.faults import (
    Found,
    array_faults,
    at_first,
    is_whole,
    notes_faults,
    plain,
    rebuilt,
    refuse,
    refuse_other,
)
from flitlab.models.registry import is_third_party
from flitlab.models.topology.graph import DELAY, HOPS, Grid, Topology
from flitlab.models.topology.limits import MOST

_INTEGERS = ("src", "dst", "delay", "reverse")


@contextmanager
def unchanged(topology: Topology, give: Callable[..., Any], *more: Any) -> Iterator[None]:
    """Raise ``FaultyError`` if a method of a user's own component writes to the topology that it is given.

    more: what else it is given; the same holds for what has a content hash.
    """
    foreign = is_third_party(give.__self__)  # type: ignore[attr-defined]
    parts = [part for part in (topology, *more) if foreign and hasattr(part, "content_hash")]
    before = [replace(part).content_hash for part in parts]
    yield
    for part, known in zip(parts, before, strict=True):
        if replace(part).content_hash != known:
            what = type(part).__name__.lower()
            refuse([("changes", f"{give.__name__}() changes the {what}; copy the arrays that you write to")])


def sound_topology(given: Topology, copy: bool = False, by: str = "graph") -> Topology:
    """A topology with its arrays as compiled code takes them; ``copy``: so that nobody else can write to them.

    by: name of the method that gave it. Raises ``FaultyError`` that tells one of each sort of :func:`topology_faults`.
    """
    refuse_other(given, Topology, by)
    refuse(topology_faults(given))
    columns = {name: plain(values, np.float64, copy) for name, values in given.columns.items()}
    whole = [*_INTEGERS, "host_switch", *([] if given.host_delay is None else ["host_delay"])]
    arrays = {name: plain(getattr(given, name), np.int64, copy) for name in whole}
    grid = given.grid
    if grid is not None:
        grid = Grid(tuple(map(int, grid.dims)), bool(grid.wrap), plain(grid.coordinates, np.int64, copy))
    return rebuilt(
        Topology, given, **arrays, capacity=plain(given.capacity, np.float64, copy), grid=grid, columns=columns,
        switches=int(given.switches), host_capacity=float(given.host_capacity), hosts_stated=bool(given.hosts_stated),
    )  # fmt: skip


def topology_faults(topology: Topology) -> Found:
    """What is wrong with a topology, but for its connection."""
    n, wrong = topology.switches, False
    for fault in _form_faults(topology):
        wrong = True
        yield fault
    if wrong:
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
    falls = np.flatnonzero(np.diff(src.astype(np.int64) * n + dst) < 0)
    if len(falls):
        c = falls[0]
        yield (
            "order",
            f"channels must be sorted by (src, dst): {src[c]} -> {dst[c]} stands before "
            f"{src[c + 1]} -> {dst[c + 1]}; Topology.from_links and from_arcs sort them",
        )
    yield from _reverse_faults(topology)
    yield from _value_faults(topology)
    yield from _host_faults(topology)
    yield from _note_faults(topology)


def connection_faults(topology: Topology) -> Found:
    """Whether every switch reaches every other one, in a topology without other faults."""
    if (pair := topology.unreachable_pair()) is not None:
        yield "connected", f"not strongly connected: no path from switch {pair[0]} to switch {pair[1]}"


def _form_faults(topology: Topology) -> Found:
    n = topology.switches
    if not isinstance(topology.kind, str):
        yield "kind", f"kind must be a text, and is {topology.kind!r}"
    if not is_whole(n) or n < 1:
        yield "switches", f"there must be a switch: switches is {n!r}"
    elif n > MOST:
        yield "switches", f"{n} switches; at most {MOST} are simulated"
    count = len(topology.src) if isinstance(topology.src, np.ndarray) and topology.src.ndim == 1 else 0
    for name in _INTEGERS:
        yield from array_faults(name, getattr(topology, name), np.integer, count)
    yield from array_faults("capacity", topology.capacity, np.floating, count)
    yield from _column_faults(topology, count)
    hosts = len(topology.host_switch) if np.ndim(topology.host_switch) == 1 else 0
    yield from array_faults("host_switch", topology.host_switch, np.integer, hosts)
    if topology.host_delay is not None:
        yield from array_faults("host_delay", topology.host_delay, np.integer, hosts)
    if max(count, hosts) > MOST:
        yield "size", f"{count} channels and {hosts} hosts; at most {MOST} each"
    if not isinstance(topology.host_capacity, int | float | np.number):
        yield "host capacity", f"host_capacity must be a number, and is {topology.host_capacity!r}"
    grid = topology.grid
    if grid is None:
        return
    if not isinstance(grid, Grid) or not all(is_whole(k) and k > 0 for k in grid.dims):
        yield "grid", "grid must be a Grid whose dims are whole numbers, or None"
    elif is_whole(n):
        yield from array_faults("grid.coordinates", grid.coordinates, np.integer, n, len(grid.dims))


def _column_faults(topology: Topology, count: int) -> Found:
    """Whether the columns hold a finite number for each of ``count`` channels, and the weight is one there is."""
    if topology.default_weight not in (HOPS, DELAY):
        yield "default weight", f"default_weight must be {HOPS!r} or {DELAY!r}, and is {topology.default_weight!r}"
    for name, values in topology.columns.items():
        if name in ("capacity", "delay", "reverse"):
            yield "columns", f"columns[{name!r}]: {name} is a field of its own"
        faults = list(array_faults(f"columns[{name!r}]", values, np.floating, count))
        yield from faults
        if not faults and not np.isfinite(values).all():
            yield "columns", f"columns[{name!r}] must be finite"


def _reverse_faults(topology: Topology) -> Found:
    reverse, src, dst = topology.reverse, topology.src, topology.dst
    outside = np.flatnonzero((reverse < -1) | (reverse >= topology.channels))
    if len(outside):
        c = outside[0]
        yield "reverse", f"reverse of channel {c} is {reverse[c]}: neither a channel nor -1"
        return
    paired = np.flatnonzero(reverse >= 0)
    back = reverse[paired]
    yield from at_first(
        "reverse ends", paired[(src[back] != dst[paired]) | (dst[back] != src[paired])],
        lambda c: f"channel {c} is {src[c]} -> {dst[c]}, but its reverse, channel {reverse[c]}, is "
        f"{src[reverse[c]]} -> {dst[reverse[c]]}",
    )  # fmt: skip
    yield from at_first(
        "reverse twice", paired[reverse[back] != paired],
        lambda c: f"the reverse of channel {c} is channel {reverse[c]}, and the reverse of that is "
        f"{reverse[reverse[c]]}: each must name the other",
    )  # fmt: skip


def _value_faults(topology: Topology) -> Found:
    capacity, delay = topology.capacity, topology.delay
    yield from at_first(
        "capacity", np.flatnonzero(~((capacity >= LEAST) & (capacity <= LARGEST))),
        lambda c: f"capacity of channel {c} is {capacity[c]}: it must be positive, from {LEAST:g} to {LARGEST:g}",
    )  # fmt: skip
    yield from at_first(
        "delay", np.flatnonzero(delay < 0), lambda c: f"delay of channel {c} is {delay[c]}: it must be 0 or more"
    )


def _host_faults(topology: Topology) -> Found:
    at, n = topology.host_switch, topology.switches
    yield from at_first(
        "host place", np.flatnonzero((at < 0) | (at >= n)),
        lambda host: f"host {host} is at switch {at[host]}, outside of 0 to {n - 1}",
    )  # fmt: skip
    yield from at_first(
        "host order", np.flatnonzero(at[1:] < at[:-1]),
        lambda host: f"hosts must be numbered switch by switch: host {host} is at switch {at[host]}, host {host + 1} "
        f"at switch {at[host + 1]}; Topology.with_hosts numbers them",
    )  # fmt: skip
    if topology.host_delay is not None:
        delay = topology.host_delay
        yield from at_first(
            "host delay", np.flatnonzero(delay < 0), lambda h: f"delay of host {h} is {delay[h]}: it must be 0 or more"
        )
    if not (LEAST <= topology.host_capacity <= LARGEST or topology.host_capacity == np.inf):
        problem = f"must be positive, from {LEAST:g} to {LARGEST:g} or infinite"
        yield "host capacity", f"host_capacity is {topology.host_capacity}: it {problem}"


def _note_faults(topology: Topology) -> Found:
    n, grid, notes = topology.switches, topology.grid, topology.notes
    yield from notes_faults(notes)
    if grid is not None:
        size = int(np.prod([int(k) for k in grid.dims], dtype=object))
        if n != size:
            yield "grid", f"a grid of {' x '.join(map(str, grid.dims))} has {size} switches, not {n}"
        elif not _fills(grid, n):
            yield "grid", "grid.coordinates must lie inside of grid.dims and differ from switch to switch"
    for key in ("tiers", "clusters"):
        yield from _part_faults(key, notes.get(key) if isinstance(notes, dict) else None, n)


def _fills(grid: Grid, n: int) -> bool:
    """Whether the switches stand at all places of a grid of as many."""
    place, dims = grid.coordinates, tuple(map(int, grid.dims))
    inside = ((place >= 0) & (place < np.array(dims))).all()
    return bool(inside) and bool(np.bincount(np.ravel_multi_index(tuple(place.T), dims), minlength=n).all())


def _part_faults(key: str, parts: Any, n: int) -> Found:
    """Whether the tiers (or the clusters, as ``key`` says) follow one another from the first switch to the last."""
    if not parts:
        return
    whole = isinstance(parts, list) and all(isinstance(part, list | tuple) and len(part) == 3 for part in parts)
    if not whole or not all(is_whole(first) and is_whole(count) for _, first, count in parts):
        yield key, f"notes['{key}'] must list [name, first switch, number of switches]"
        return
    following = 0
    for name, first, count in parts:
        if first != following:
            yield key, f"{key[:-1]} {name!r} starts at switch {first}, the one before ends at {following - 1}"
        following = first + count
    if following != n:
        yield key, f"the {key} hold {following} switches, the topology {n}"
