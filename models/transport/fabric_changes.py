# SPDX-License-Identifier: Apache-2.0
"""Changes of the network during a run of sprayed packets: links, and the routes that entropy values select."""

from dataclasses import replace

import numpy as np

from flitlab.models.arrays import Bools, Ints
from flitlab.models.routing.route_set import PathTable
from flitlab.models.routing.routes import RouteForm, Routes
from flitlab.models.rules.tables import Tables
from flitlab.models.timeline.epochs import Epoch, Timeline
from flitlab.models.timeline.stable_paths import merged_routes, stable_paths, with_thresholds
from flitlab.models.transport.fabric import Fabric, FabricChange, LinkSettings, SpraySession, link_settings_at
from flitlab.models.transport.session import check_hop, ratios

FACTOR = "timeline.factor"
"""The key of an event that makes links too slow."""


def with_changes(session: SpraySession, routes: Routes, timeline: Timeline) -> SpraySession:
    """The session with the events of its network.

    Links that return, or change their rate, get the queue settings of the rate. When the routing learns of an epoch,
    entropy values select its routes, and as far as possible the same paths as at first.

    Parameters
    ----------
    session: the session.
    routes: of the network as built.
    timeline: the events.

    Returns
    -------
    The session with its changes.

    Raises
    ------
    SpecError: hosts are cut off, the routing cannot serve the remaining network, or links are too slow.
    """
    topology, changes, paths = session.topology, [], _Paths(session, routes)
    _check_pace(timeline, session.fabric, session.delay[: topology.channels])
    now = timeline.epochs[0]
    working, settings = np.ones(topology.channels, bool), link_settings_at(session, Epoch.built(topology).rate)
    for tick in sorted({*(epoch.tick for epoch in timeline.epochs), *timeline.reroutes}):
        worked, were, now = working, settings, timeline.epoch_at(tick)
        working, settings = now.works(topology), link_settings_at(session, now.rate)
        changed = np.flatnonzero(working & (~worked | _differ(were, settings)))
        change = FabricChange(tick, np.flatnonzero(worked & ~working), changed, settings.of(changed))
        if tick in timeline.reroutes:
            remaining = timeline.surviving(now)
            reachable_routes = merged_routes(topology, routes, remaining, timeline.routes(remaining, routes))
            change = replace(change, routes=paths.tables(reachable_routes), moved=reachable_routes is not routes)
        if len(change.broken) or len(changed) or change.routes is not None:
            changes.append(change)
    rules, *transports = (each._replace(fallible=1) for each in (session.rules, *session.transports))
    changes = sorted([*session.changes, *changes], key=lambda change: change.tick)  # those of a pause storm
    return replace(session, rules=rules, transports=tuple(transports), routes=paths.built, changes=tuple(changes))


def check_changes(timeline: Timeline, routes: Routes, fabric: Fabric) -> None:
    """Check a timeline as :func:`with_changes` does.

    Parameters
    ----------
    timeline: the events.
    routes: of the network as built.
    fabric: links, switches and packets.

    Raises
    ------
    SpecError: as for :func:`with_changes`.
    """
    topology = timeline.topology
    for tick in timeline.reroutes:
        remaining = timeline.surviving(timeline.epoch_at(tick))
        merged_routes(topology, routes, remaining, timeline.routes(remaining, routes))
    _check_pace(timeline, fabric)


def _check_pace(timeline: Timeline, fabric: Fabric, delay: Ints | int = 0) -> None:
    """Raise ``SpecError`` for links on which a packet takes too long. delay: int64 [channels], ticks."""
    for epoch in timeline.epochs:
        slowest = ratios(timeline.topology, epoch.rate, FACTOR)
        check_hop(delay + np.zeros_like(slowest), slowest, fabric.mtu_bytes, FACTOR, FACTOR)


def _differ(were: LinkSettings, lines: LinkSettings) -> Bools:
    """Whether the settings of each channel have changed, bool [channels]."""
    differs: Bools = np.any([a != b for a, b in zip(were, lines, strict=True)], axis=0)
    return differs


class _Paths:
    """The tables of all routes of a run, in order.

    Where routes are paths, later ones are numbered after earlier ones, so that packets in flight keep theirs. built:
    the first tables.
    """

    def __init__(self, session: SpraySession, routes: Routes):
        self._topology = session.topology
        self._whole, self._first = routes, routes.paths
        self.built = session.routes
        if routes.form == RouteForm.PATHS:
            assert routes.paths is not None
            self._first = with_thresholds(routes.paths)
            self.built = _behind(session.routes, self._first, 0)
        self._last = self.built

    def tables(self, routes: Routes) -> Tables:
        """The tables of some routes, in the numbers of the whole network."""
        if routes.form != RouteForm.PATHS:
            return self.built if routes is self._whole else routes.tables(self._topology)
        assert self._first is not None and routes.paths is not None
        if routes is self._whole:
            return self._last._replace(pair_start=self.built.pair_start)
        self._last = _behind(self._last, stable_paths(self._first, routes.paths), len(self._last.path_start) - 1)
        return self._last


def _behind(tables: Tables, paths: PathTable, count: int) -> Tables:
    """The tables with these paths behind the first ``count``."""
    ends = tables.path_start[: count + 1]
    return tables._replace(
        pair_start=paths.pair_start + count,
        path_start=np.concatenate([ends[:-1], ends[-1] + paths.path_start]),
        path_port=np.concatenate([tables.path_port[: ends[-1]], paths.port]),
        path_threshold=np.concatenate([tables.path_threshold[:count], paths.threshold]),
    )
