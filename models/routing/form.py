# SPDX-License-Identifier: Apache-2.0
"""Validation of the form of routes: arrays that compiled code can read, and choices that fit together."""

from typing import Any

import numpy as np

from flitlab.models.arrays import Bytes, Masks
from flitlab.models.jit import njit
from flitlab.models.routing.layers import MOST_LAYERS
from flitlab.models.routing.paths import MAX_PATHS
from flitlab.models.routing.route_set import LAST_WORD, PathTable, Routes
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.port_sets import ports_at, table_shape
from flitlab.models.rules.tables import MaxPorts, RouteForm, Selection, VcPolicy
from flitlab.models.topology.graph import Topology
from flitlab.models.validation import Errors, array_errors, first_error, is_whole, notes_errors

MOST_DRAWS = 64
"""The most paths drawn for a packet."""


def form_errors(topology: Topology, routes: Routes) -> Errors:
    """Errors that keep compiled code from reading routes, and contradictions in them.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    numbers = list(_number_errors(routes))
    yield from numbers
    if numbers:
        return
    n, form, policy = topology.switches, routes.form, routes.vc_policy
    degree = int(topology.out_degree.max(initial=0))
    yield from _select_errors(routes)
    yield from notes_errors(routes.notes)
    has_tables = form in (RouteForm.TABLE, RouteForm.VIA)
    most = MaxPorts.TABLE if has_tables and not routes.deflection else MaxPorts.MASK
    if form != RouteForm.PATHS and degree > most:
        yield "degree", f"a set holds {most} ports, and a switch has {degree}; use PATHS, or raise SpecError"
    if form == RouteForm.DIGITS and routes.digits is None:
        yield "digits", "form DIGITS needs digits: (degree, shift)"
    yield from array_errors("ports", routes.ports, np.uint64, *_size_of(routes.ports, has_tables, n, degree))
    for name, needed in (("leg", form in (RouteForm.VIA, RouteForm.POLARIZED)), ("escape", policy == VcPolicy.ESCAPE)):
        array = getattr(routes, name)
        if needed or array is not None:
            yield from array_errors(name, array, np.uint8, n, n)
    if routes.port_threshold is not None:
        yield from _port_threshold_errors(topology, routes, degree)
    if policy == VcPolicy.GROUPS or routes.group is not None:
        yield from array_errors("group", routes.group, np.int32, n)
    if routes.escape is not None and policy != VcPolicy.ESCAPE:
        yield "escape", "escape is given, but vc_policy is not ESCAPE"
    valid_paths = True
    if (routes.paths is not None) != (form == RouteForm.PATHS):
        valid_paths = False
        yield (
            "paths",
            "form PATHS needs paths: a PathTable" if form == RouteForm.PATHS else "paths are of form PATHS only",
        )
    elif form == RouteForm.PATHS:
        errors = list(_path_form_errors(topology, routes.paths, degree))
        valid_paths = not errors
        yield from errors
    if (policy == VcPolicy.LAYERED or routes.layer is not None) and valid_paths:
        yield from _layer_errors(routes, n)


def _size_of(array: Any, needed: bool, n: int, degree: int) -> tuple[int, ...]:
    """The required shape of a table of port sets; if it is not needed, any two-dimensional one."""
    return table_shape(n, degree) if needed or np.ndim(array) != 2 else np.shape(array)


def _number_errors(routes: Routes) -> Errors:
    if not isinstance(routes.kind, str):
        yield "kind", f"kind must be a text, and is {routes.kind!r}"
    for name in ("form", "select", "hops_max", "layers", "threshold"):
        if not is_whole(value := getattr(routes, name)):
            yield name, f"{name} must be a whole number, and is {value!r}"
    if routes.form not in RouteForm:
        forms = "TABLE, PATHS, VIA, DIGITS or POLARIZED of flitlab.models.routing.routes"
        yield "form", f"form is {routes.form!r}: it must be {forms}"
    policy = routes.vc_policy
    if policy is not None and not (is_whole(policy) and policy in VcPolicy):
        yield "vc_policy", f"vc_policy is {policy!r}: it must be None, or ANY, HOP ... of flitlab.models.routing.routes"
    if not isinstance(routes.deflection, bool | np.bool_):
        yield "deflection", f"deflection must be True or False, and is {routes.deflection!r}"
    digits = routes.digits
    if digits is not None and not (isinstance(digits, tuple) and len(digits) == 2 and all(map(is_whole, digits))):
        yield "digits", f"digits must be (degree, shift), two whole numbers, and is {digits!r}"


def _select_errors(routes: Routes) -> Errors:
    """Choices, VC policies and forms that do not fit together."""
    form, select, policy = routes.form, routes.select, routes.vc_policy
    choices = {
        RouteForm.VIA: ("RANDOM", "HASH", "UGAL_LOCAL", "UGAL_GLOBAL", "PROGRESSIVE"),
        RouteForm.PATHS: ("RANDOM", "HASH", "LEAST_QUEUED"),
    }.get(form, ("RANDOM", "HASH", "ADAPTIVE"))
    if form in (RouteForm.PATHS, RouteForm.VIA) and select == Selection.ADAPTIVE:
        yield "select", "select ADAPTIVE serves TABLE and DIGITS only: the others draw once, at the source"
    elif select not in (getattr(Selection, name) for name in choices):
        names = f"{', '.join(choices[:-1])} or {choices[-1]}"
        yield "select", f"select is {select}: it must be {names} of flitlab.models.routing.routes"
    if form == RouteForm.POLARIZED and select != Selection.ADAPTIVE:
        yield "select", "form POLARIZED needs select ADAPTIVE"
    if select == Selection.PROGRESSIVE and (
        routes.group is None or policy not in (None, VcPolicy.GROUPS, VcPolicy.HOP, VcPolicy.RISING)
    ):
        yield "select", "select PROGRESSIVE needs group, and vc_policy None, GROUPS, RISING or HOP"
    if form == RouteForm.POLARIZED and policy not in (VcPolicy.HOP, VcPolicy.RISING):
        yield "vc_policy", "form POLARIZED needs vc_policy RISING or HOP"
    if not 0 <= routes.threshold <= 1 << 30:
        yield "threshold", f"threshold is {routes.threshold}: it must be 0 or more, and at most 2**30"
    if not 1 <= routes.draws <= MOST_DRAWS:
        yield "draws", f"draws is {routes.draws}: it must be 1 to {MOST_DRAWS}"
    if routes.deflection and form != RouteForm.TABLE:
        yield "deflection", "deflection needs form TABLE"
    if policy == VcPolicy.LEGS and form != RouteForm.VIA:
        yield "vc_policy", "vc_policy LEGS needs form VIA"
    if policy == VcPolicy.ESCAPE and (form != RouteForm.TABLE or select != Selection.ADAPTIVE):
        yield "vc_policy", "vc_policy ESCAPE needs form TABLE and select ADAPTIVE"


def _path_form_errors(topology: Topology, table: object, degree: int) -> Errors:
    if not isinstance(table, PathTable):
        yield "paths", f"paths must be a PathTable, and is {type(table).__name__}"
        return
    if degree > MaxPorts.PATH:
        yield "degree", f"paths serve at most {MaxPorts.PATH} channels out of a switch, and a switch has {degree}"
    paths = len(table.path_start) - 1 if np.ndim(table.path_start) == 1 else 0
    if paths > MAX_PATHS:
        yield "paths", f"{paths} paths; at most {MAX_PATHS:.0e} are kept"
        return
    ports = len(table.port) if np.ndim(table.port) == 1 else 0
    form = [
        *array_errors("pair_start", table.pair_start, np.int64, topology.switches**2 + 1),
        *array_errors("path_start", table.path_start, np.int64, max(paths, 0) + 1),
        *array_errors("port", table.port, np.uint8, ports),
        *array_errors("threshold", table.threshold, np.uint32, max(paths, 0) if np.size(table.threshold) else 0),
    ]
    yield from form
    if form:
        return
    for name, array, total, what in (
        ("pair_start", table.pair_start, paths, "paths"), ("path_start", table.path_start, ports, "ports"),
    ):  # fmt: skip
        if array[0] != 0 or array[-1] != total or (array[1:] < array[:-1]).any():
            yield name, f"{name} must rise from 0 to the number of {what}, {total}"
            return
    if len(table.threshold):
        yield from _threshold_errors(table, topology.switches)


def _threshold_errors(table: PathTable, n: int) -> Errors:
    """Invalid shares of paths: every path needs one, and those of a pair must sum to one."""
    pair = np.repeat(np.arange(n * n), np.diff(table.pair_start))
    wrong = table.shares <= 0
    last = table.pair_start[1:][np.diff(table.pair_start) > 0] - 1
    wrong[last] |= table.threshold[last] != LAST_WORD
    yield from first_error(
        "threshold", np.flatnonzero(wrong),
        lambda p: f"the threshold {table.threshold[p]} of a path from switch {pair[p] // n} to switch {pair[p] % n}: "
        f"thresholds of a pair must rise from above 0 to {LAST_WORD}",
    )  # fmt: skip


def _port_threshold_errors(topology: Topology, routes: Routes, degree: int) -> Errors:
    """Invalid shares of next hops: every allowed port needs one, and those of a switch must sum to one."""
    n, table = topology.switches, routes.port_threshold
    if routes.form not in (RouteForm.TABLE, RouteForm.VIA) or routes.select not in (Selection.RANDOM, Selection.HASH):
        yield "port_threshold", "port_threshold goes with form TABLE or VIA, and select RANDOM or HASH"
        return
    form = list(array_errors("port_threshold", table, np.uint8, n, n, degree))
    yield from form
    if form or table is None or list(array_errors("ports", routes.ports, np.uint64, *table_shape(n, degree))):
        return
    pair = _first_invalid_thresholds(routes.ports, table)
    if pair >= 0:
        t, v = divmod(pair, n)
        thresholds = f"thresholds of switch {v} for switch {t} are {table[t, v].tolist()}"
        yield "port_threshold", f"{thresholds}: those of the ports allowed must rise from above 0 to 255"


@njit
def _first_invalid_thresholds(ports: Masks, threshold: Bytes) -> int:
    """t * switches + v of the first set of ports whose thresholds do not rise to 255; -1: there is none.

    The threshold of the last port stands for 256, so the one before it may be 255, too.
    """
    for t in range(len(ports)):
        for v in range(len(ports)):
            end, unchecked = 0, ports_at(ports[t], v)
            while not is_empty(unchecked):
                p = lowest(unchecked)
                unchecked = without_lowest(unchecked)
                begin, end = end, int(threshold[t, v, p])
                if end != 255 if is_empty(unchecked) else end <= begin:
                    return t * len(ports) + v
    return -1


def _layer_errors(routes: Routes, n: int) -> Errors:
    units = n * n if routes.paths is None else len(routes.paths.path_start) - 1
    layer = routes.layer
    form = list(array_errors("layer", layer, np.uint8, units))
    if form or layer is None:  # None is a fault of the form
        yield "layer", f"{form[0][1]}: one for each {'pair' if routes.paths is None else 'path'}"
    elif not 1 <= routes.layers <= MOST_LAYERS:
        yield "layers", f"layers is {routes.layers}: it must be 1 to {MOST_LAYERS}"
    elif int(layer.max(initial=0)) >= routes.layers:
        yield "layer", f"layer {layer.max()} occurs, but layers is {routes.layers}"
