# SPDX-License-Identifier: Apache-2.0
"""What happens to the network of sprayed packets during a run: links, and the routes that entropies stand for."""

from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.routing.routes import PATHS, Routes
from flitlab.models.routing.ways import PathTable
from flitlab.models.rules.tables import Tables
from flitlab.models.timeline.epochs import Epoch, Timeline
from flitlab.models.timeline.rerouted import kept, round_rate, with_shares
from flitlab.models.transport.fabric import Fabric, FabricChange, Lines, SpraySession, lines_at
from flitlab.models.transport.session import check_hop, ratios

FACTOR = "timeline.factor"
"""The key of links that an event makes too slow."""


def with_changes(session: SpraySession, routes: Routes, timeline: Timeline) -> SpraySession:
    """The session with what happens to its network. routes: of the network as it was built.

    Links that return, and such as run at another rate, have the queues and marks that go with it. Whenever the routing
    learns of an epoch, entropies stand for the routes of it, but as far as these allow for those that they stood for at
    first. Raises ``SpecError`` where hosts are cut off then, where the routing does not serve what is left, and for
    links that are too slow.
    """
    topology, changes, paths = session.topology, [], _Paths(session, routes)
    _check_pace(timeline, session.fabric, session.delay[: topology.channels])
    now = timeline.epochs[0]
    works, lines = np.ones(topology.channels, bool), lines_at(session, Epoch.built(topology).rate)
    for tick in sorted({*(epoch.tick for epoch in timeline.epochs), *timeline.reroutes}):
        worked, were, now = works, lines, timeline.at(tick)
        works, lines = now.works(topology), lines_at(session, now.rate)
        other = np.flatnonzero(works & (~worked | _differ(were, lines)))
        change = FabricChange(tick, np.flatnonzero(worked & ~works), other, lines.of(other))
        if tick in timeline.reroutes:
            left = timeline.left(now)
            found = kept(topology, routes, left, timeline.routes(left, routes))
            change = replace(change, routes=paths.tables(found), moved=found is not routes)
        if len(change.broken) or len(other) or change.routes is not None:
            changes.append(change)
    rules, *transports = (each._replace(fallible=1) for each in (session.rules, *session.transports))
    return replace(session, rules=rules, transports=tuple(transports), routes=paths.built, changes=tuple(changes))


def check_changes(timeline: Timeline, routes: Routes, fabric: Fabric) -> None:
    """Raise ``SpecError`` as :func:`with_changes` does."""
    topology = timeline.topology
    for tick in timeline.reroutes:
        left = timeline.left(timeline.at(tick))
        kept(topology, routes, left, timeline.routes(left, routes))
    _check_pace(timeline, fabric)


def _check_pace(timeline: Timeline, fabric: Fabric, delay: Ints | int = 0) -> None:
    """Raise ``SpecError`` for links on which a packet takes too long. delay: int64 [channels], ticks."""
    for epoch in timeline.epochs:
        slowest = ratios(timeline.topology, epoch.rate, FACTOR)
        check_hop(delay + np.zeros_like(slowest), slowest, fabric.mtu_bytes, FACTOR, FACTOR)


def _differ(were: Lines, lines: Lines) -> Bools:
    """Whether each channel has other numbers than it had, bool [channels]."""
    found: Bools = np.any([a != b for a, b in zip(were, lines, strict=True)], axis=0)
    return found


class _Paths:
    """The tables of all routes that a run has, one after the other.

    Where routes are paths, those of later ones are numbered after those of earlier ones, so that packets under way keep
    theirs. built: the tables at first.
    """

    def __init__(self, session: SpraySession, routes: Routes):
        self._topology = session.topology
        self._whole, self._first = routes, routes.paths
        self.built = session.routes
        if routes.form == PATHS:
            assert routes.paths is not None
            self._first = with_shares(routes.paths)
            self.built = _behind(session.routes, self._first, 0)
        self._last = self.built

    def tables(self, routes: Routes) -> Tables:
        """The tables of some routes, in the numbers of the whole network."""
        if routes.form != PATHS:
            return self.built if routes is self._whole else routes.tables(self._topology)
        assert self._first is not None and routes.paths is not None
        if routes is self._whole:
            return self._last._replace(pair_start=self.built.pair_start)
        self._last = _behind(self._last, round_rate(self._first, routes.paths), len(self._last.path_start) - 1)
        return self._last


def _behind(tables: Tables, paths: PathTable, count: int) -> Tables:
    """The tables with these paths behind the first ``count`` that they have."""
    ends = tables.path_start[: count + 1]
    return tables._replace(
        pair_start=paths.pair_start + count,
        path_start=np.concatenate([ends[:-1], ends[-1] + paths.path_start]),
        path_port=np.concatenate([tables.path_port[: ends[-1]], paths.port]),
        path_threshold=np.concatenate([tables.path_threshold[:count], paths.threshold]),
    )
