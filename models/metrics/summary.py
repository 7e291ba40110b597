# SPDX-License-Identifier: Apache-2.0
"""Columns that every topology has."""

from flitlab.models.mappings import Row
from flitlab.models.topology.bounds import moore_aspl
from flitlab.models.topology.distances import sampled_distances
from flitlab.models.topology.graph import Topology

EXACT = 3 * 10**11
"""Limit of switches times channels up to which all distances are computed; about ten seconds."""

ALWAYS = (
    "kind", "switches", "channels", "links", "hosts", "directed", "degree_min", "degree_max", "diameter", "aspl",
    "moore_aspl", "edge_hash", "notes", "diameter_at_least", "aspl_stderr", "aspl_sources",
)  # fmt: skip
"""Columns of the summary; no metric may use these names."""

SAMPLE = 2048
"""Sources of distances beyond :data:`EXACT`."""


def summary(topology: Topology) -> Row:
    """Return the JSON-able summary that ``simrun topology`` prints; degrees count channels *out of* a switch.

    links: bi-directional links counted once, plus uni-directional channels. diameter, aspl: over pairs of different
    switches; in a multistage network, of one where hosts inject and another where they eject.

    Beyond ``EXACT`` the ASPL is an estimate from ``aspl_sources`` switches with standard error ``aspl_stderr``, and the
    diameter is unknown (None) but ``diameter_at_least``. Both are None if the topology is not strongly connected.
    """
    if topology.unreachable_pair() is not None:
        return _columns(topology) | {"diameter": None, "aspl": None}
    exact = topology.switches * topology.channels <= EXACT
    distances = sampled_distances(topology, topology.switches if exact else SAMPLE)
    farthest = len(distances.counts) - 1
    sampled = distances.sources < topology.switches
    columns = _columns(topology) | {"diameter": None if sampled else farthest, "aspl": distances.mean}
    if sampled:
        columns |= {
            "diameter_at_least": farthest, "aspl_stderr": distances.stderr, "aspl_sources": distances.sources,
        }  # fmt: skip
    return columns


def _columns(topology: Topology) -> Row:
    """The columns of every topology; those of distances are None."""
    degree = topology.out_degree
    return {
        "kind": topology.kind,
        "switches": topology.switches,
        "channels": topology.channels,
        "links": topology.channels - int((topology.reverse >= 0).sum()) // 2,
        "hosts": topology.hosts,
        "directed": topology.directed,
        "degree_min": int(degree.min()),
        "degree_max": int(degree.max()),
        "diameter": None,
        "aspl": None,
        "moore_aspl": None
        if topology.is_multistage  # its distances are between some pairs of switches only
        else moore_aspl(topology.switches, int(degree.max()), topology.directed),
        "edge_hash": topology.edge_hash,
        "notes": topology.notes,
    }
