# SPDX-License-Identifier: Apache-2.0
"""Long Hop networks: Cayley graphs of binary vectors, wired by an error-correcting code."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.codes import find_code, griesmer_bound
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE
from flitlab.models.topology.spec import TopologySpec


@register("topology", "long_hop")
class LongHop(TopologySpec):
    """Long Hop network: the Cayley graph of F_2^dim with ``degree`` generators taken from a code.

    The 2**dim switches are the binary vectors of ``dim`` bits; switch v has a link to v xor g for each of
    ``degree`` distinct generators g that span the space. As columns of a matrix the generators make a binary
    linear code [degree, dim, D]. The eigenvalues are degree - 2 weight(u), u over the code words, so the
    bisection is exactly 2**dim / 2 * D links: every equal split cuts as much (spectral bound), and one by
    the bits of a lightest word just that.

    The code is the best that is found among quadratic residue (Golay), extended BCH, Reed-Muller and simplex
    codes, shortened, with columns removed or added, and a local search from there (``seed``). D is counted
    over all words. ``notes``: the construction, the generators, D (``distance``), the Griesmer upper bound
    of D, and the bisection. D need not be the best known; degree = dim gives the hypercube.

    2**dim switches, 2**dim * degree / 2 links.

    Valid: dim <= degree <= 2**dim - 1, up to 2 * 10**7 channels.

    Example: ``topology: {kind: long_hop, dim: 6, degree: 9}``

    Source: Tomic, Optimal networks from error correcting codes, ANCS 2013.
    """

    dim: int = Field(ge=1, le=20)
    """Bits of a number: 2**dim switches."""
    degree: int = Field(ge=1)
    """Links of every switch."""
    seed: int = Field(default=1, ge=0)
    """Seed of the search for a code."""

    def graph(self) -> Topology:
        n = 2**self.dim
        if not self.dim <= self.degree < n:
            raise SpecError(f"valid from dim = {self.dim} to 2**dim - 1 = {n - 1}", key="degree")
        if n * self.degree > MAX_SIZE:
            raise SpecError(f"{n} switches: valid up to {MAX_SIZE // n}", key="degree")
        code = find_code(self.degree, self.dim, self.seed)
        u = np.tile(np.arange(n), self.degree)
        v = u ^ np.repeat(code.columns, n)
        links = np.column_stack([u, v])[u < v]
        notes = {
            "construction": code.name,
            "generators": code.columns.tolist(),
            "distance": code.distance,
            "griesmer_bound": griesmer_bound(self.degree, self.dim),
            "bisection_links": n // 2 * code.distance,
        }
        return Topology.from_links(self.kind, n, links, notes=notes)
