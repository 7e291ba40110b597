# SPDX-License-Identifier: Apache-2.0
"""Clustered random graphs: two random regular clusters with few links between them."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import first_connected, random_pairs


@register("topology", "clustered")
class Clustered(TopologySpec):
    """Two equal clusters: every switch has ``cross`` links to the other cluster and the rest to its own.

    Switches 0 .. n/2 - 1 are one cluster. ``degree`` (alpha + beta in the paper, 2d) counts all links of a
    switch, ``cross`` (beta) those to the other cluster. Inside, the clusters are random (degree - cross)-regular
    graphs; between them lies a random cross-regular bipartite graph. Simple and connected; n * degree / 2
    links, of which n * cross / 2 (noted as ``cross_links``) lie between the clusters.

    Valid: n even, 1 <= cross <= min(degree, n/2), degree - cross < n/2, and (degree - cross) * n/2 even.

    Example: ``topology: {kind: clustered, n: 64, degree: 6, cross: 1, seed: 1}``

    Source: graph A of MUT section II-B and Theorem 1; SIN Theorem 4 (with cross = q n).
    """

    n: int = Field(ge=2)
    """Switches, an even number."""
    degree: int = Field(ge=1)
    """Links of every switch."""
    cross: int = Field(ge=1)
    """Links of every switch to the other cluster."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        self._check()
        half, inside = self.n // 2, self.degree - self.cross
        first = np.arange(self.n) < half
        rng = np.random.default_rng(self.seed)

        def draw() -> Topology | None:
            parts = [
                random_pairs(inside * first, False, rng),
                random_pairs(inside * ~first, False, rng),
                random_pairs(self.cross * first, True, rng, into=self.cross * ~first),
            ]
            drawn = [part for part in parts if part is not None]
            if len(drawn) < len(parts):
                return None
            notes = {"cross_links": half * self.cross}
            return Topology.from_links(self.kind, self.n, np.concatenate(drawn), notes=notes)

        return first_connected(draw, "cross")

    def _check(self) -> None:
        half, inside = self.n // 2, self.degree - self.cross
        if self.n % 2:
            raise SpecError(f"must be even; nearest {self.n - 1}, {self.n + 1}", key="n")
        limit_random_size(self.n * self.degree, "n")
        if self.cross > min(self.degree, half):
            raise SpecError(f"must be at most {min(self.degree, half)}", key="cross")
        if inside >= half:
            limit = half - 1 + self.cross
            raise SpecError(f"leaves {inside} links in a cluster of {half}; at most {limit}", key="degree")
        if inside * half % 2:
            near = [c for c in (self.cross - 1, self.cross + 1) if 1 <= c <= min(self.degree, half)]
            raise SpecError(
                f"(degree - cross) * n/2 = {inside * half} must be even; nearest {', '.join(map(str, near)) or 'none'}",
                key="cross",
            )
