# SPDX-License-Identifier: Apache-2.0
"""What is said of every topology, asked for or not."""

from typing import Any

from flitlab.models.topology.bounds import moore_aspl
from flitlab.models.topology.distances import sampled_distances
from flitlab.models.topology.graph import Topology

EXACT = 3 * 10**11
"""Up to so many switches times channels all distances are found: some ten seconds."""

ALWAYS = (
    "kind", "switches", "channels", "links", "hosts", "directed", "degree_min", "degree_max", "diameter", "aspl",
    "moore_aspl", "edge_hash", "notes", "diameter_at_least", "aspl_stderr", "aspl_sources",
)  # fmt: skip
"""Columns that are the summary's: no metric may have a name of these."""

SAMPLE = 2048
"""Switches from which the distances are found above that."""


def summary(topology: Topology) -> dict[str, Any]:
    """What ``simrun topology`` prints, JSON-able; degrees count channels *out of* a switch.

    links: bi-directional links counted once, plus uni-directional channels.

    Above ``EXACT`` the ASPL is an estimate from ``aspl_sources`` switches with standard error ``aspl_stderr``;
    the diameter is then not known (None), only that it is ``diameter_at_least``. Raises ``ValueError`` if the
    topology is not strongly connected.
    """
    exact = topology.switches * topology.channels <= EXACT
    distances = sampled_distances(topology, topology.switches if exact else SAMPLE)
    farthest = len(distances.counts) - 1
    sampled = distances.sources < topology.switches
    degree = topology.out_degree
    columns = {
        "kind": topology.kind,
        "switches": topology.switches,
        "channels": topology.channels,
        "links": topology.channels - int((topology.reverse >= 0).sum()) // 2,
        "hosts": topology.hosts,
        "directed": topology.directed,
        "degree_min": int(degree.min()),
        "degree_max": int(degree.max()),
        "diameter": None if sampled else farthest,
        "aspl": distances.mean,
        "moore_aspl": moore_aspl(topology.switches, int(degree.max()), topology.directed),
        "edge_hash": topology.edge_hash,
        "notes": topology.notes,
    }
    if sampled:
        columns |= {
            "diameter_at_least": farthest, "aspl_stderr": distances.stderr, "aspl_sources": distances.sources,
        }  # fmt: skip
    return columns
