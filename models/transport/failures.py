# SPDX-License-Identifier: Apache-2.0
"""Links that fail, return or become slow while flows are in flight."""

from dataclasses import dataclass, replace

import numpy as np

from flitlab.models.arrays import Bools, Ints, Ints32
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.timeline.epochs import Epoch, Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import Amount, draw_links, link_numbers
from flitlab.models.transport.paths import PathDraw, Paths, backwards, draw_paths
from flitlab.models.transport.queues import exact
from flitlab.models.transport.session import Change, Session, check_hop, check_transit, path_delays, ratios

_NO_SUBFLOWS = np.zeros(0, np.int64)
_NO_PATHS = Paths(np.zeros(1, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class LinkFailures:
    """``links`` (a share or a number, drawn from ``seed`` as static failures are) fail at ``at_ms`` for good.

    Packets on them, and packets still sent to them, are dropped. ``reroute_ms`` later the affected subflows get paths
    that avoid them. It is a timeline of one event.
    """

    links: Amount
    at_ms: float
    reroute_ms: float
    seed: int = 1


def with_failures(session: Session, failures: LinkFailures, routing: RoutingSpec) -> Session:
    """The session with a failure and the rerouting after it.

    Parameters
    ----------
    session: the session.
    failures: the links and times.
    routing: computes the routes of the remaining network.

    Returns
    -------
    The session with its changes.

    Raises
    ------
    SpecError: the remaining network, or the routing on it, does not connect all switches.
    """
    if failures.reroute_ms < 0 or failures.at_ms < 0:
        raise SpecError("must be 0 or more", key="at_ms" if failures.at_ms < 0 else "reroute_ms")
    topology = session.topology
    at_ms, reroute_ms = exact(failures.at_ms), exact(failures.reroute_ms)
    failure_tick, reroute = (session.ticks(ms / 1000) for ms in (at_ms, at_ms + reroute_ms))
    link = link_numbers(topology)
    known = np.unique(link)
    failed = known[draw_links(failures.links, len(known), [failures.seed, 1], "failures.links")]
    built = Epoch.built(topology)
    broken = replace(built, tick=failure_tick, links=~np.isin(link, failed))
    try:
        return with_timeline(session, Timeline(topology, (built, broken), (reroute,), routing))
    except SpecError as error:
        error.key = "failures" if error.key == "timeline" else error.key
        raise


def with_timeline(session: Session, timeline: Timeline) -> Session:
    """The session with the events of its network, and the new paths of its subflows.

    When the routing learns of an epoch, a subflow takes its first path if that works, else its present one if that
    works, else a new path drawn in the remaining network. Raises ``SpecError`` where hosts are cut off, or the routing
    cannot serve the remaining network.
    """
    topology, changes, present = session.topology, [], session.paths
    now = Epoch.built(topology)
    dead, ratio, learned = _dead(session, now), session.ratio, 0
    for tick in sorted({*(epoch.tick for epoch in timeline.epochs), *timeline.reroutes}):
        was_dead, was_ratio, now = dead, ratio, timeline.epoch_at(tick)
        dead, ratio = (
            _dead(session, now),
            np.append(ratios(topology, now.rate, "timeline.factor"), session.ratio[topology.channels :]),
        )
        moved, paths = _NO_SUBFLOWS, _NO_PATHS
        if tick in timeline.reroutes:
            learned += 1
            moved, paths = _reroute(session, timeline, now, dead, present, learned)
            present = _with(present, moved, paths)
        other = np.flatnonzero(ratio != was_ratio)
        broken, mended = np.flatnonzero(dead & ~was_dead), np.flatnonzero(was_dead & ~dead)
        back = backwards(topology, paths) if session.back is not None and len(moved) else None
        if len(broken) or len(mended) or len(other) or len(moved):
            ack_delay = path_delays(paths, session.delay)
            changes.append(Change(tick, broken, mended, other, ratio[other], moved, paths, back, ack_delay))
    changed_session = replace(session, changes=tuple(changes))
    check_hop(
        changed_session.delay,
        changed_session.slowest,
        changed_session.queues.packet_bytes,
        "timeline.factor",
        "timeline.factor",
    )
    for change in (None, *changes):
        for paths_of_direction in (session.paths, session.back) if change is None else (change.paths, change.back):
            check_transit(
                paths_of_direction,
                changed_session.delay,
                changed_session.slowest,
                changed_session.queues,
                "timeline.factor",
            )
    return changed_session


def _dead(session: Session, epoch: Epoch) -> Bools:
    """Whether each link is down in an epoch, bool [links]; host links never are."""
    broken = ~epoch.works(session.topology)
    return np.append(broken, np.zeros(len(session.delay) - len(broken), bool))


def _reroute(
    session: Session, timeline: Timeline, epoch: Epoch, dead: Bools, present: Paths, count: int
) -> tuple[Ints, Paths]:
    """The subflows that change their path, int64 [moved], and their new paths.

    dead: bool [links]. present: the paths of all subflows so far. count: how often the routing has learned, including
    now.
    """
    remaining = timeline.surviving(epoch)
    routes = timeline.routes(remaining, session.routes)
    first, broken = _passes(session.paths, dead), _passes(present, dead)
    returning = ~first & ~_alike(session.paths, present)
    drawn_anew = np.flatnonzero(first & broken)
    moved = np.flatnonzero(returning | (first & broken))
    number = np.concatenate([remaining.channel, np.arange(session.topology.channels, len(session.delay))])
    new = _drawn(session, remaining.topology, routes, drawn_anew, number, count)
    paths = _with(session.paths, drawn_anew, new)
    return moved, _of(paths, moved)


def _drawn(session: Session, remaining: Topology, routes: Routes, subflows: Ints, number: Ints, count: int) -> Paths:
    """New paths of some subflows, in the numbers of the whole network's links."""
    if not len(subflows):
        return _NO_PATHS
    flow = np.searchsorted(session.first, subflows, side="right") - 1
    source, destination = session.flows.source[flow], session.flows.destination[flow]
    paths = draw_paths(
        remaining, routes, source, destination, np.arange(len(subflows) + 1), PathDraw.WITH_REPLACEMENT, session.seed,
        number=session.subflows * count + subflows,
    )  # fmt: skip
    return Paths(paths.start, number[paths.link].astype(np.int32))


def _passes(paths: Paths, dead: Bools) -> Bools:
    """Whether each path passes a link that is down, bool [paths]."""
    crosses: Bools = np.logical_or.reduceat(dead[paths.link], paths.start[:-1])
    return crosses


def _alike(one: Paths, other: Paths) -> Bools:
    """Whether each path is the same in both, bool [paths]."""
    pairs = zip(_each(one), _each(other), strict=True)
    return np.array([np.array_equal(a, b) for a, b in pairs], bool)


def _each(paths: Paths) -> list[Ints32]:
    """The links of each path, int32."""
    return np.split(paths.link, paths.start[1:-1]) if len(paths.start) > 1 else []


def _joined(each: list[Ints32]) -> Paths:
    """The paths with these links."""
    start = np.append(0, np.cumsum([len(links) for links in each])).astype(np.int64)
    return Paths(start, np.concatenate([*each, np.zeros(0, np.int32)]).astype(np.int32))


def _of(paths: Paths, indices: Ints) -> Paths:
    """A subset of the paths."""
    each = _each(paths)
    return _joined([each[i] for i in indices.tolist()])


def _with(paths: Paths, indices: Ints, new: Paths) -> Paths:
    """The paths with some replaced."""
    each = _each(paths)
    for i, links in zip(indices.tolist(), _each(new), strict=True):
        each[i] = links
    return _joined(each)
