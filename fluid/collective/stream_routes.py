# SPDX-License-Identifier: Apache-2.0
"""Routes along the paths of trees, through switches without ranks."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from flitlab.models.collective.pipeline import Stream
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.routing.paths import longest, path_notes
from flitlab.models.routing.planned import weighted_path_table
from flitlab.models.routing.routes import NO_PORTS, Routes
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.models.topology.graph import Topology


def stream_routes(topology: Topology, streams: Iterable[Stream]) -> Routes | None:
    """Routes of messages between ranks along the paths of streams; None if all messages go to neighbours.

    Each path between two switches gets its share of the parts of the streams. Other pairs of switches use a shortest
    path. Vertices beyond the switches are hosts.
    """
    used = _used(topology, streams)
    if all(len(path) == 2 for paths in used.values() for path in paths):
        return None
    pairs = sorted(used)
    channels, weight, counts = [], [], []
    for pair in pairs:
        paths = sorted(used[pair].items(), key=lambda item: (len(item[0]), item[0]))
        total = sum(count for _, count in paths)
        counts.append(len(paths))
        weight += [count / total for _, count in paths]
        channels += [_channels(topology, path) for path, _ in paths]
    lengths = np.array([len(path_channels) for path_channels in channels], np.int64)
    flat = np.array([channel for path_channels in channels for channel in path_channels], np.int32)
    own = np.array([s * topology.switches + t for s, t in pairs], np.int64)
    path_set = PathSet(starts(np.array(counts, np.int64)), starts(lengths), flat)
    table = weighted_path_table(topology, own, path_set, np.array(weight), 1, 0)
    return Routes(
        "trees",
        NO_PORTS,
        Selection.RANDOM,
        longest(table),
        notes=path_notes(topology, table),
        form=RouteForm.PATHS,
        paths=table,
    )


def _used(topology: Topology, streams: Iterable[Stream]) -> dict[tuple[int, int], Counter[tuple[int, ...]]]:
    """Parts per path of switches, by the ends of the path."""
    used: defaultdict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for stream in streams:
        for path in stream.paths:
            inner = tuple(v for v in path if v < topology.switches)
            if len(inner) > 1:
                used[inner[0], inner[-1]][inner] += stream.count
    return used


def _channels(topology: Topology, path: tuple[int, ...]) -> list[int]:
    """The first channel from each switch of a path to the next one."""
    n, ends = topology.switches, topology.src * topology.switches + topology.dst
    return [int(np.searchsorted(ends, u * n + v)) for u, v in itertools.pairwise(path)]
