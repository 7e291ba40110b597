# SPDX-License-Identifier: Apache-2.0
"""Traversal of next hops: whether they lead every packet to its destination, and how far."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Bytes, Int, Integers, Ints, Masks
from flitlab.models.jit import njit
from flitlab.models.routing.bit_parallel import FARTHEST, longest_paths
from flitlab.models.routing.route_set import Routes
from flitlab.models.rules.bits import WORD, empty_set, is_empty, lowest, port_list, with_port, without_lowest
from flitlab.models.rules.port_sets import ports_at, set_ports
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.distances import reachable
from flitlab.models.topology.graph import Topology
from flitlab.models.validation import Errors, first_error, with_count

_DEAD_END, _LOOP, _ESCAPE_LOOP, _UNEVEN, _LEG = range(5)
_NAMES = ("dead end", "loop", "escape loop", "uneven", "leg")

_NEW, _OPEN, _DONE = range(3)
_FAR = 1 << 30

_NAMED_SWITCHES = 12
"""Switches of a loop that a message names."""


def port_errors(topology: Topology, routes: Routes) -> Errors:
    """Ports that do not exist, in any set, and sets that must be empty.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    degree, ports, escape = topology.out_degree, routes.ports, routes.escape
    own = np.arange(topology.switches)
    count, t, v = _ports_beyond(ports.reshape(*ports.shape[:2], -1), degree)
    if count:
        last = port_list(ports_at(ports[t], v))[-1]
        text = f"next hop of switch {v} to switch {t} is port {last}, and it has {degree[v]} of them"
        yield "next hop beyond", with_count(text, count)
    yield from first_error(
        "next hop at target", np.flatnonzero(ports[own, own].reshape(len(own), -1).any(axis=1)),
        lambda v: f"ports[{v}, {v}] must be 0: a packet for switch {v} leaves the network there",
    )  # fmt: skip
    if routes.deflection and (topology.in_degree != degree).any():
        yield "deflection", "deflection needs as many channels into every switch as out of it"
    if escape is None:
        return
    wrong = escape >= degree
    np.fill_diagonal(wrong, False)
    if wrong.any():
        t, v = np.argwhere(wrong)[0].tolist()
        text = f"escape channel of switch {v} to switch {t} is port {escape[t, v]}, and it has {degree[v]} of them"
        yield "escape beyond", with_count(text, int(wrong.sum()))


@njit
def _has_port_beyond(here: Masks, degree: Int) -> bool:
    """Whether a set of ports, uint64 [masks], has one from ``degree`` on."""
    for word in range(len(here)):
        left = max(degree - WORD * word, 0)
        if left < WORD and here[word] >> np.uint64(left):
            return True
    return False


@njit
def _ports_beyond(ports: Masks, degree: Integers) -> tuple[int, int, int]:
    """Sets with a port that their switch lacks: their number, and destination and switch of the first.

    ports: uint64 [switches, switches, masks].
    """
    count, target, switch = 0, -1, -1
    for t in range(len(ports)):
        for v in range(len(ports)):
            if not _has_port_beyond(ports[t, v], degree[v]):
                continue
            if count == 0:
                target, switch = t, v
            count += 1
    return count, target, switch


class Survey(NamedTuple):
    """The result of following all next hops.

    longest_from, longest_to: int64 [switches], channels of the longest path from, and to, a switch. errors: int64
    [kinds], number of errors; of the first of each kind, target: int64 [kinds]; example: int64 [kinds, switches + 1],
    the path to it; size: int64 [kinds], length of that.
    """

    longest_from: Ints
    longest_to: Ints
    errors: Ints
    target: Ints
    example: Ints
    size: Ints

    def longest(self, via: bool) -> int:
        """Channels of the longest route, over any intermediate switch if ``via``."""
        return int((self.longest_to + self.longest_from if via else self.longest_to).max(initial=0))


def survey_of(topology: Topology, routes: Routes) -> Survey:
    """Follow all sets of next hops, whose ports must exist. A deflected packet may reach any switch.

    Where only next hops need checking, and all are valid, many destinations are checked at once.

    Parameters
    ----------
    topology: the network.
    routes: routes on it.
    """
    n, kinds, ends = topology.switches, len(_NAMES), topology.dst_switches
    shapes = n, n, kinds, kinds, (kinds, n + 1), kinds
    survey, none = Survey(*(np.zeros(shape, np.int64) for shape in shapes)), np.zeros((0, 0), np.uint8)
    escape = none if routes.escape is None else routes.escape
    leg = none if routes.form != RouteForm.VIA or routes.leg is None else routes.leg
    starts = np.arange(n) if routes.deflection else topology.src_switches
    if len(escape) == len(leg) == 0 and _all_paths_end(topology, routes, starts, ends, survey):
        return survey
    connected = topology.unreachable_pair() is None
    reach = np.zeros((0, 0), np.bool_) if connected else reachable(topology)
    _survey(
        _NextHops(routes.ports, escape, leg, topology.out_start, topology.dst), starts, topology.src_switches, ends,
        reach, new_walk(routes.ports), new_walk(routes.ports), survey,
    )  # fmt: skip
    return survey


def _all_paths_end(topology: Topology, routes: Routes, starts: Ints, ends: Ints, survey: Survey) -> bool:
    """Whether all paths from ``starts`` to ``ends`` end there; then fills ``survey``.

    False also for paths that are too long to be counted.
    """
    longest = longest_paths(topology, routes.ports)
    among = longest if len(ends) == topology.switches else longest[np.ix_(ends, topology.src_switches)]
    from_starts = among if len(starts) < topology.switches else longest[ends]
    same = len(np.intersect1d(starts, ends))
    if np.count_nonzero(from_starts) < from_starts.size - same or among.max(initial=0) == FARTHEST:
        return False
    survey.longest_to[ends] = among.max(1, initial=0)
    survey.longest_from[topology.src_switches] = among.max(0, initial=0)
    return True


class Walk(NamedTuple):
    """A depth-first search along next hops; all arrays are [switches].

    state: _NEW, _OPEN (on the present path) or _DONE. untried: ports that have not been tried, a row of a table of port
    sets. stack: the present path. order: finished switches, farthest first. most, least: channels to the destination.
    """

    state: Integers
    untried: Masks
    stack: Ints
    order: Ints
    most: Ints
    least: Ints


def new_walk(ports: Masks) -> Walk:
    """Scratch for :func:`follow`. ports: table of port sets."""
    n = len(ports)
    state, stack = np.zeros(n, np.int8), np.zeros(n + 1, np.int64)
    return Walk(state, np.zeros(ports.shape[1:], np.uint64), stack, *(np.zeros(n, np.int64) for _ in range(3)))


@njit
def _enter(row: Masks, w: Walk, top: int, v: Int) -> None:
    """Extend the path to switch v."""
    w.stack[top] = v
    w.state[v] = _OPEN
    set_ports(w.untried, v, ports_at(row, v))
    w.most[v], w.least[v] = 0, _FAR


@njit
def follow(row: Masks, out_start: Integers, dst: Integers, t: Int, starts: Ints, w: Walk) -> tuple[int, int]:
    """Follow next hops to t from some switches.

    Parameters
    ----------
    row: of a table of port sets, next hops towards t.
    out_start: int64 [switches + 1], first channel of each switch.
    dst: int64 [channels], end of each channel.
    t: the destination.
    starts: int64, the switches.
    w: scratch, changed in place.

    Returns
    -------
    (-1, number of finished switches), or (error kind, length of w.stack).
    """
    w.state[:] = _NEW
    done = 0
    for s in starts:
        if s == t or w.state[s] != _NEW:
            continue
        top = 0
        _enter(row, w, top, s)
        while top >= 0:
            v = w.stack[top]
            ports = ports_at(w.untried, v)
            if is_empty(ports_at(row, v)):
                return _DEAD_END, top + 1
            if is_empty(ports):
                w.state[v] = _DONE
                w.order[done] = v
                done += 1
                top -= 1
                continue
            x = dst[out_start[v] + lowest(ports)]
            if x != t and w.state[x] == _NEW:
                top += 1
                _enter(row, w, top, x)
            elif x != t and w.state[x] == _OPEN:
                w.stack[top + 1] = x
                return _LOOP, top + 2
            else:  # it has been followed to its end
                set_ports(w.untried, v, without_lowest(ports))
                w.most[v] = max(w.most[v], 1 if x == t else w.most[x] + 1)
                w.least[v] = min(w.least[v], 1 if x == t else w.least[x] + 1)
    return -1, done


@njit
def _record_error(survey: Survey, kind: int, t: Int, stack: Ints, size: int) -> None:
    """Count an error, and keep the first of its kind."""
    if survey.errors[kind] == 0:
        survey.target[kind] = t
        survey.example[kind, :size] = stack[:size]
        survey.size[kind] = size
    survey.errors[kind] += 1


@njit
def _add_escape(row: Masks, out_start: Integers, dst: Integers, t: Int, w: Walk, done: int, e: Walk) -> None:
    """Extend w.most by escape channels, which may be taken anywhere and are followed to the end (e.most)."""
    for v in w.order[:done]:
        most, ports = e.most[v], ports_at(row, v)
        while not is_empty(ports):
            x = dst[out_start[v] + lowest(ports)]
            ports = without_lowest(ports)
            if x != t:
                most = max(most, w.most[x] + 1)
        w.most[v] = most


@njit
def _check_legs(leg: Bytes, ends: Ints, t: Int, w: Walk, done: int, survey: Survey) -> None:
    """Check that all paths of a leg are as long as stated."""
    for v in w.order[:done]:
        if w.least[v] != w.most[v]:
            w.stack[0] = v
            _record_error(survey, _UNEVEN, t, w.stack, 1)
    for s in ends:
        if s != t and leg[s, t] != w.most[s]:
            w.stack[0], w.stack[1] = s, w.most[s]
            _record_error(survey, _LEG, t, w.stack, 2)


class _NextHops(NamedTuple):
    """Next hops, and the channels; escape, leg: empty where there are none."""

    ports: Masks
    escape: Bytes
    leg: Bytes
    out_start: Integers
    dst: Integers


@njit
def _survey(
    hops: _NextHops, starts: Ints, sources: Ints, ends: Ints, reach: Bools, w: Walk, e: Walk, survey: Survey
) -> None:  # fmt: skip
    """Fill ``survey`` by following all next hops.

    starts: where packets may be; sources: where they are injected; ends: where they are ejected. reach: bool [switches,
    switches], whether a path leads from s to t; empty if all do. w, e: scratch, for next hops and for escape channels.
    """
    (ports, escape, leg, out_start, dst), chain = hops, np.empty_like(hops.ports[0])
    for t in ends:
        row = ports[t]
        reaching = starts if len(reach) == 0 else starts[reach[starts, t]]
        error, size = follow(row, out_start, dst, t, reaching, w)
        if error >= 0:
            _record_error(survey, error, t, w.stack, size)
            continue
        if len(escape) > 0:
            for v in range(len(chain)):
                set_ports(chain, v, with_port(empty_set(ports_at(row, v)), escape[t, v]))
            error, length = follow(chain, out_start, dst, t, w.order[:size], e)
            if error >= 0:
                _record_error(survey, _ESCAPE_LOOP, t, e.stack, length)
                continue
            _add_escape(row, out_start, dst, t, w, size, e)
        if len(leg) > 0:
            _check_legs(leg, ends, t, w, size, survey)
        for s in sources:
            if s != t and w.state[s] == _DONE:
                survey.longest_from[s] = max(survey.longest_from[s], w.most[s])
                survey.longest_to[t] = max(survey.longest_to[t], w.most[s])


def survey_errors(routes: Routes, survey: Survey) -> Errors:
    """The errors of a survey as text."""
    for kind, name in enumerate(_NAMES):
        if survey.errors[kind]:
            example, t = survey.example[kind, : survey.size[kind]].tolist(), int(survey.target[kind])
            yield name, with_count(_error_text(kind, example, t, routes), int(survey.errors[kind]))


def _error_text(kind: int, example: list[int], t: int, routes: Routes) -> str:
    source = f" (it comes from switch {example[0]})" if len(example) > 1 else ""
    if kind == _DEAD_END:
        return f"next hops to switch {t}: a packet at switch {example[-1]} has none{source}"
    if kind == _UNEVEN:
        return f"next hops to switch {t}: from switch {example[0]} they differ in length; the routes of a leg must not"
    if kind == _LEG:
        s, hops = example
        assert routes.leg is not None
        return f"leg[{s}, {t}] is {routes.leg[s, t]}, and the route takes {hops} channels"
    what = "next hops" if kind == _LOOP else "escape channels"
    loop = example[example.index(example[-1]) :]
    return f"{what} to switch {t}: a packet from switch {example[0]} goes round in a loop: {_path_text(loop)}"


def _path_text(switches: list[int]) -> str:
    """Switches in a row; of many, the first and the last ones."""
    if len(switches) > _NAMED_SWITCHES:
        return " -> ".join(map(str, [*switches[: _NAMED_SWITCHES // 2], "...", *switches[-_NAMED_SWITCHES // 2 :]]))
    return " -> ".join(map(str, switches))
