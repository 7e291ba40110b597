# SPDX-License-Identifier: Apache-2.0
"""Small-world data centre networks: a lattice, and random links that prefer close switches."""

from math import isqrt, prod
from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import listed, nearest_valid
from flitlab.models.topology.spec import TopologySpec

MAX_SWITCHES = 4096
"""The table of lattice distances has the square of it."""

MAX_PORTS = 64

HEX_DEPTH = 3

LATTICES = {"ring": [3], "torus2d": [3, 3], "hextorus3d": [3, 2, 3]}
"""Smallest extents of the lattices."""


def lattice_dims(lattice: str, n: int) -> list[int] | None:
    """Extents of the most nearly square lattice of n switches (hextorus3d: of depth 3); None if there is none."""
    if lattice == "ring":
        return [n] if n >= 3 else None
    depth = HEX_DEPTH if lattice == "hextorus3d" else 1
    layer = n // depth
    rows = next((r for r in range(isqrt(layer), 2, -1) if layer % r == 0), None)
    if n % depth or rows is None:
        return None
    return [rows, layer // rows] + ([depth] if depth > 1 else [])


def lattice_links(lattice: str, dims: list[int]) -> Ints:
    """Return the links of a lattice, int64 [m, 2]; the last coordinate varies fastest in the switch numbers.

    A row (u, v) leads from u to the next switch v along an axis, cyclically, each link once. In ``hextorus3d`` axis 1
    (columns) has links from columns c to c + 1 only where row + c is even.

    Parameters
    ----------
    lattice: a key of :data:`LATTICES`; not checked, other names give a torus.
    dims: extents, as many as the lattice has: [n], [rows, columns] or [rows, columns, depth].

    Source: Shin, Wong and Sirer, Small-world datacenters, SoCC 2011.
    """
    switch = np.arange(prod(dims)).reshape(dims)
    links = []
    for axis in range(len(dims)):
        u, v = switch, np.roll(switch, -1, axis)
        if lattice == "hextorus3d" and axis == 1:
            row, column, _ = np.indices(dims)
            even = (row + column) % 2 == 0
            u, v = u[even], v[even]
        links.append(np.column_stack([u.ravel(), v.ravel()]))
    return np.concatenate(links)


def random_links(
    ports: Ints, hops: np.ndarray, exponent: int, rng: np.random.Generator
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Draw links between random ports, int64 [m, 2], and count the ports that stay free.

    A port of switch u gets a partner v with probability proportional to hops[u, v] ** -exponent, among the switches
    with random ports. Where v has no free port, a random link of v is removed, and the port at its other end is wired
    again. Ends when fewer than two ports are free, or after 100 draws per port.

    Parameters
    ----------
    ports: int64 [n], random ports of every switch.
    hops: integers [n, n], lattice distances.
    exponent: how fast the probability decreases with the distance.
    rng: source of all draws.
    """
    weight = np.append(0.0, np.arange(1.0, hops.max() + 1) ** -exponent)
    partners: list[list[int]] = [[] for _ in ports]
    waiting = rng.permutation(np.repeat(np.arange(len(ports)), ports)).tolist()
    free, unwired = ports.copy(), len(waiting)
    for _ in range(100 * len(waiting)):
        if unwired < 2:
            break
        u = waiting.pop()
        if not free[u]:
            continue  # this port was taken by a link from elsewhere
        chance = np.cumsum(weight[hops[u]] * (ports > 0))
        v = int(np.searchsorted(chance, rng.random() * chance[-1], "right"))
        if v == len(ports):
            break  # no other switch has random ports
        if free[v]:
            unwired -= 2
        else:
            w = partners[v].pop(rng.integers(len(partners[v])))
            partners[w].remove(v)
            free[[v, w]] += 1
            waiting.insert(0, w)
        partners[u].append(v)
        partners[v].append(u)
        free[[u, v]] -= 1
    links = [(u, v) for u, near in enumerate(partners) for v in near if u < v]
    return np.array(links, np.int64).reshape(-1, 2), int(free.sum())


@register("topology", "swdc")
class Swdc(TopologySpec):
    """Small-world data centre network: a lattice, and random links that are mostly short.

    ``lattice: ring``: 2 links a switch. ``torus2d``: 4, rows and columns closed into rings. ``hextorus3d``: 5,
    namely to rows r +- 1, depths d +- 1, and to column c + 1 where r + c is even, c - 1 where it is odd, all
    closed into rings. The remaining ``degree`` - 2, 4 or 5 ports get random links. A port of switch u goes to
    v with probability proportional to distance(u, v) ** -e, the distance taken in the lattice and e = 1, 2
    and 3 for the three lattices. If no random port of v is free, one of v's random links, drawn evenly, is
    removed, and the port at its other end is drawn again. As close switches displace one another's links, the
    remaining ones are shorter than this distribution, most of all with one random port and e = 3. A random link may run
    parallel to another one or to a lattice link (``notes`` count them); no switch has more than ``degree``
    links, and all have that many but for one free port if the number of random ports is odd.

    ``dims`` fixes the extents of the lattice ([n], [rows, columns] or [rows, columns, depth]); otherwise they
    are the most nearly square ones with rows <= columns, hextorus3d of depth 3: n = 484 gives 22 x 22,
    n = 450 gives 10 x 15 x 3. With an odd number of columns the even-odd rule of hextorus3d cannot close: at
    column 0, switches of even rows have two column links and those of odd rows none, so lattice degrees are
    6 and 4 there, 5 elsewhere; random ports make up the difference. Choose dims with even columns to avoid it.

    Valid: n or dims given; every extent 3 or more (columns of hextorus3d: 2); degree from the lattice's
    largest to 64; n up to 4096.

    Example: ``topology: {kind: swdc, lattice: torus2d, n: 64, degree: 6, seed: 1}``

    Example: ``topology: {kind: swdc, lattice: hextorus3d, dims: [6, 4, 3], seed: 1}``

    Source: Shin, Wong and Sirer, Small-world datacenters, SoCC 2011. SIN figure 4.3 takes degree 6, and
    22 x 22 and 10 x 15 x 3 switches with two hosts each. The treatment of parallel links is our interpretation.
    """

    lattice: Literal["ring", "torus2d", "hextorus3d"]
    """The lattice."""
    n: int | None = Field(default=None, ge=1)
    """Switches. null: by dims."""
    dims: list[int] | None = None
    """Switches along each dimension of the lattice. null: as square as possible."""
    degree: int = Field(default=6, ge=1, le=MAX_PORTS)
    """Links of every switch, those of the lattice included."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        dims = self._dims()
        n = prod(dims)
        links = lattice_links(self.lattice, dims)
        lattice = Topology.from_links(self.kind, n, links)
        ports = self.degree - lattice.out_degree
        if ports.min() < 0:
            why = " with an odd number of columns" if lattice.out_degree.min() < lattice.out_degree.max() else ""
            raise SpecError(f"valid from {lattice.out_degree.max()} for {self.lattice}{why}", key="degree")
        exponent = len(dims)
        more, free = random_links(ports, distances(lattice), exponent, np.random.default_rng(self.seed))
        links = np.concatenate([links, more])
        notes = {
            "lattice_dims": dims,
            "exponent": exponent,
            "lattice_links": len(links) - len(more),
            "random_links": len(more),
            "parallel_links": len(links) - len(np.unique(np.sort(links, axis=1), axis=0)),
            "free_ports": free,
        }
        return Topology.from_links(self.kind, n, links, notes=notes)

    def _dims(self) -> list[int]:
        """Extents of the lattice, checked."""
        if self.dims is None:
            if self.n is None:
                raise SpecError("missing: give n or dims", key="n")
            if self.n > MAX_SWITCHES:
                raise SpecError(f"valid up to {MAX_SWITCHES}", key="n")
            dims = lattice_dims(self.lattice, self.n)
            if dims is None:
                near = nearest_valid(self.n, lambda n: lattice_dims(self.lattice, n) is not None)
                raise SpecError(f"no {self.lattice} of that order; nearest {listed(near)}", key="n")
            return dims
        least = LATTICES[self.lattice]
        if len(self.dims) != len(least) or any(d < low for d, low in zip(self.dims, least, strict=True)):
            extents = " x ".join(f"{low}.." for low in least)
            raise SpecError(f"{self.lattice} takes {len(least)} extents: {extents}", key="dims")
        if prod(self.dims) > MAX_SWITCHES:
            raise SpecError(f"{prod(self.dims)} switches: valid up to {MAX_SWITCHES}", key="dims")
        if self.n not in (None, prod(self.dims)):
            raise SpecError(f"differs from n = {self.n}", key="dims")
        return self.dims
