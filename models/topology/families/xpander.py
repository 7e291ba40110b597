# SPDX-License-Identifier: Apache-2.0
"""Xpander: random lifts of complete graphs."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.families.hyperx import clique_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import first_connected


@register("topology", "xpander")
class Xpander(TopologySpec):
    """Xpander: a random lift of the complete graph of degree + 1 nodes, every node being ``lift`` switches.

    The ``lift`` switches of a node are not linked to one another; those of any two nodes are linked one to one, by a
    random matching. (degree + 1) lift switches, numbered node by node, with ``degree`` bi-directional links each, one
    to every other node. Drawn again until it is connected.

    Valid: degree 3 or more, or lift 1, the complete graph; up to 5 * 10**6 channels. With degree 2 most draws
    are several rings. ``notes["clusters"]`` are the nodes.

    Example: ``topology: {kind: xpander, degree: 5, lift: 8, seed: 1}``

    Source: Valadarsky, Shahaf, Dinitz and Schapira, Xpander, CoNEXT 2016, doi:10.1145/2999572.2999580, the k-lift in
    one step.
    """

    degree: int = Field(ge=1)
    """Links of every switch."""
    lift: int = Field(ge=1)
    """Switches of each node of the complete graph."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any degree from 3 and any lift from 2; a lift of 1 is a full mesh."""
        for degree in range(3, equipment.most_links):
            for lift in range(2, equipment.most_switches // (degree + 1) + 1):
                switches = (degree + 1) * lift
                keys = {"kind": "xpander", "degree": degree, "lift": lift}
                yield from flat(equipment, keys, switches, degree, switches * degree // 2)

    def graph(self) -> Topology:
        nodes = self.degree + 1
        limit_random_size(nodes * self.lift * self.degree, "lift")
        pairs = clique_links(np.arange(nodes)[None], 1)
        rng = np.random.default_rng(self.seed)
        return first_connected(lambda: self._drawn(pairs, rng), "lift")

    def _drawn(self, pairs: np.ndarray, rng: np.random.Generator) -> Topology:
        """pairs: int64 [pairs, 2], of nodes."""
        matched = rng.permuted(np.tile(np.arange(self.lift), (len(pairs), 1)), axis=1)
        src = pairs[:, :1] * self.lift + np.arange(self.lift)
        dst = pairs[:, 1:] * self.lift + matched
        links = np.column_stack([src.ravel(), dst.ravel()])
        clusters = [[f"node {i}", i * self.lift, self.lift] for i in range(self.degree + 1)]
        notes = {"clusters": clusters}
        return Topology.from_links(self.kind, (self.degree + 1) * self.lift, links, notes=notes)
