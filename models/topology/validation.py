# SPDX-License-Identifier: Apache-2.0
"""Validation of topologies: sorted channels between existing switches, hosts, capacities."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from flitlab.models.arrays import LARGEST, LEAST
from flitlab.models.registry import is_third_party
from flitlab.models.topology.file_delays import note_problem
from flitlab.models.topology.graph import DELAY, HOPS, Grid, Topology
from flitlab.models.topology.limits import MAX_SIZE
from flitlab.models.validation import (
    Errors,
    array_errors,
    contiguous,
    copy_fields,
    first_error,
    is_whole,
    notes_errors,
    raise_errors,
    require_type,
)

_INTEGERS = ("src", "dst", "delay", "reverse")
_OF_HOSTS = ("host_delay", "ejection")
"""Optional fields with an integer for each host."""


@contextmanager
def unchanged(topology: Topology, method: Callable[..., Any], *inputs: Any) -> Iterator[None]:
    """Raise ``FaultyError`` if a third-party method modifies the topology or another input that it receives.

    Parameters
    ----------
    topology: the first argument of the method.
    method: the method that is called inside the block.
    inputs: further arguments; those with a content hash are checked as well.
    """
    third_party = is_third_party(method.__self__)  # type: ignore[attr-defined]
    checked = [value for value in (topology, *inputs) if third_party and hasattr(value, "content_hash")]
    hashes = [replace(value).content_hash for value in checked]
    yield
    for value, hash_before in zip(checked, hashes, strict=True):
        if replace(value).content_hash != hash_before:
            type_name = type(value).__name__.lower()
            raise_errors(
                [("changes", f"{method.__name__}() changes the {type_name}; copy the arrays that you write to")]
            )


def validate_topology(topology: Topology, copy: bool = False, method: str = "graph") -> Topology:
    """Validate a topology and return it with arrays as compiled code requires them.

    Parameters
    ----------
    topology: the topology to validate.
    copy: whether to copy all arrays, so that nothing else can write to them.
    method: name of the method that returned it, for messages.

    Raises
    ------
    FaultyError: with one of each kind of :func:`topology_errors`.
    """
    require_type(topology, Topology, method)
    raise_errors(topology_errors(topology))
    columns = {name: contiguous(values, np.float64, copy) for name, values in topology.columns.items()}
    optional = [name for name in _OF_HOSTS if getattr(topology, name) is not None]
    integer_fields = [*_INTEGERS, "host_switch", *optional]
    arrays = {name: contiguous(getattr(topology, name), np.int64, copy) for name in integer_fields}
    grid = topology.grid
    if grid is not None:
        grid = Grid(tuple(map(int, grid.dims)), bool(grid.wrap), contiguous(grid.coordinates, np.int64, copy))
    return copy_fields(
        Topology, topology, **arrays, capacity=contiguous(topology.capacity, np.float64, copy), grid=grid,
        columns=columns, switches=int(topology.switches), host_capacity=float(topology.host_capacity),
        hosts_stated=bool(topology.hosts_stated),
    )  # fmt: skip


def topology_errors(topology: Topology) -> Errors:
    """Yield the errors of a topology, except missing connections."""
    n, wrong = topology.switches, False
    for error in _form_errors(topology):
        wrong = True
        yield error
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
    yield from _reverse_errors(topology)
    yield from _value_errors(topology)
    yield from _host_errors(topology)
    yield from _note_errors(topology)


def connection_errors(topology: Topology) -> Errors:
    """Yield an error if a topology, valid otherwise, is not strongly connected."""
    if (pair := topology.unreachable_pair()) is not None:
        yield "connected", f"not strongly connected: no path from switch {pair[0]} to switch {pair[1]}"


def _form_errors(topology: Topology) -> Errors:
    n = topology.switches
    if not isinstance(topology.kind, str):
        yield "kind", f"kind must be a text, and is {topology.kind!r}"
    if not is_whole(n) or n < 1:
        yield "switches", f"there must be a switch: switches is {n!r}"
    elif n > MAX_SIZE:
        yield "switches", f"{n} switches; at most {MAX_SIZE} are simulated"
    count = len(topology.src) if isinstance(topology.src, np.ndarray) and topology.src.ndim == 1 else 0
    for name in _INTEGERS:
        yield from array_errors(name, getattr(topology, name), np.integer, count)
    yield from array_errors("capacity", topology.capacity, np.floating, count)
    yield from _column_errors(topology, count)
    hosts = len(topology.host_switch) if np.ndim(topology.host_switch) == 1 else 0
    yield from array_errors("host_switch", topology.host_switch, np.integer, hosts)
    for name in _OF_HOSTS:
        if getattr(topology, name) is not None:
            yield from array_errors(name, getattr(topology, name), np.integer, hosts)
    if max(count, hosts) > MAX_SIZE:
        yield "size", f"{count} channels and {hosts} hosts; at most {MAX_SIZE} each"
    if not isinstance(topology.host_capacity, int | float | np.number):
        yield "host capacity", f"host_capacity must be a number, and is {topology.host_capacity!r}"
    grid = topology.grid
    if grid is None:
        return
    if not isinstance(grid, Grid) or not all(is_whole(k) and k > 0 for k in grid.dims):
        yield "grid", "grid must be a Grid whose dims are whole numbers, or None"
    elif is_whole(n):
        yield from array_errors("grid.coordinates", grid.coordinates, np.integer, n, len(grid.dims))


def _column_errors(topology: Topology, count: int) -> Errors:
    """Yield errors of columns, which hold a finite number for each of ``count`` channels, and of the default weight."""
    if topology.default_weight not in (HOPS, DELAY):
        yield "default weight", f"default_weight must be {HOPS!r} or {DELAY!r}, and is {topology.default_weight!r}"
    for name, values in topology.columns.items():
        if name in ("capacity", "delay", "reverse"):
            yield "columns", f"columns[{name!r}]: {name} is a field of its own"
        errors = list(array_errors(f"columns[{name!r}]", values, np.floating, count))
        yield from errors
        if not errors and not np.isfinite(values).all():
            yield "columns", f"columns[{name!r}] must be finite"


def _reverse_errors(topology: Topology) -> Errors:
    reverse, src, dst = topology.reverse, topology.src, topology.dst
    outside = np.flatnonzero((reverse < -1) | (reverse >= topology.channels))
    if len(outside):
        c = outside[0]
        yield "reverse", f"reverse of channel {c} is {reverse[c]}: neither a channel nor -1"
        return
    paired = np.flatnonzero(reverse >= 0)
    back = reverse[paired]
    yield from first_error(
        "reverse ends", paired[(src[back] != dst[paired]) | (dst[back] != src[paired])],
        lambda c: f"channel {c} is {src[c]} -> {dst[c]}, but its reverse, channel {reverse[c]}, is "
        f"{src[reverse[c]]} -> {dst[reverse[c]]}",
    )  # fmt: skip
    yield from first_error(
        "reverse twice", paired[reverse[back] != paired],
        lambda c: f"the reverse of channel {c} is channel {reverse[c]}, and the reverse of that is "
        f"{reverse[reverse[c]]}: each must name the other",
    )  # fmt: skip


def _value_errors(topology: Topology) -> Errors:
    capacity, delay = topology.capacity, topology.delay
    yield from first_error(
        "capacity", np.flatnonzero(~((capacity >= LEAST) & (capacity <= LARGEST))),
        lambda c: f"capacity of channel {c} is {capacity[c]}: it must be positive, from {LEAST:g} to {LARGEST:g}",
    )  # fmt: skip
    yield from first_error(
        "delay", np.flatnonzero(delay < 0), lambda c: f"delay of channel {c} is {delay[c]}: it must be 0 or more"
    )


def _host_errors(topology: Topology) -> Errors:
    host_switch, n = topology.host_switch, topology.switches
    yield from first_error(
        "host place", np.flatnonzero((host_switch < 0) | (host_switch >= n)),
        lambda host: f"host {host} is at switch {host_switch[host]}, outside of 0 to {n - 1}",
    )  # fmt: skip
    yield from first_error(
        "host order", np.flatnonzero(host_switch[1:] < host_switch[:-1]),
        lambda host: f"hosts must be numbered switch by switch: host {host} is at switch {host_switch[host]}, host "
        f"{host + 1} at switch {host_switch[host + 1]}; Topology.with_hosts numbers them",
    )  # fmt: skip
    if topology.ejection is not None:
        eject = topology.ejection
        yield from first_error(
            "ejection", np.flatnonzero((eject < 0) | (eject >= n)),
            lambda host: f"host {host} ejects at switch {eject[host]}, outside of 0 to {n - 1}",
        )  # fmt: skip
    if topology.host_delay is not None:
        delay = topology.host_delay
        yield from first_error(
            "host delay", np.flatnonzero(delay < 0), lambda h: f"delay of host {h} is {delay[h]}: it must be 0 or more"
        )
    if not (LEAST <= topology.host_capacity <= LARGEST or topology.host_capacity == np.inf):
        problem = f"must be positive, from {LEAST:g} to {LARGEST:g} or infinite"
        yield "host capacity", f"host_capacity is {topology.host_capacity}: it {problem}"


def _note_errors(topology: Topology) -> Errors:
    n, grid, notes = topology.switches, topology.grid, topology.notes
    yield from notes_errors(notes)
    if isinstance(notes, dict) and (problem := note_problem(notes, topology.hosts)):
        yield "notes", problem
    if grid is not None:
        size = int(np.prod([int(k) for k in grid.dims], dtype=object))
        if n != size:
            yield "grid", f"a grid of {' x '.join(map(str, grid.dims))} has {size} switches, not {n}"
        elif not _fills(grid, n):
            yield "grid", "grid.coordinates must lie inside of grid.dims and differ from switch to switch"
    for key in ("tiers", "clusters"):
        yield from _part_errors(key, notes.get(key) if isinstance(notes, dict) else None, n)


def _fills(grid: Grid, n: int) -> bool:
    """Whether the switches occupy all positions of a grid of equal size."""
    coordinates, dims = grid.coordinates, tuple(map(int, grid.dims))
    inside = ((coordinates >= 0) & (coordinates < np.array(dims))).all()
    return bool(inside) and bool(np.bincount(np.ravel_multi_index(tuple(coordinates.T), dims), minlength=n).all())


def _part_errors(key: str, parts: Any, n: int) -> Errors:
    """Yield an error unless the tiers (or clusters, by ``key``) cover all switches in order."""
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
