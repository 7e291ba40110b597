# SPDX-License-Identifier: Apache-2.0
"""Linear programs solved in rational numbers, where no tolerance can hide anything: for problems of a few switches."""

from fractions import Fraction

import numpy as np

from flitlab.models.topology.graph import Topology

ZERO = Fraction(0)


def maximise(gain: list[Fraction], rows: list[list[Fraction]], most: list[Fraction]) -> Fraction:
    """The largest gain . x with rows . x <= most, x >= 0, most >= 0: the simplex method by Bland's rule."""
    size, slack = len(gain), range(len(rows))
    table = [[*rows[i], *(Fraction(i == j) for j in slack), most[i]] for i in slack]
    price = [*(-value for value in gain), *([ZERO] * (len(rows) + 1))]
    basis = list(range(size, size + len(rows)))
    while (column := next((j for j, value in enumerate(price[:-1]) if value < 0), None)) is not None:
        candidates = [(row[-1] / row[column], basis[i], i) for i, row in enumerate(table) if row[column] > 0]
        if not candidates:
            raise ValueError("unbounded")
        pivot = min(candidates)[2]
        basis[pivot] = column
        scale = table[pivot][column]
        table[pivot] = [value / scale for value in table[pivot]]
        for row in (*table[:pivot], *table[pivot + 1 :], price):
            if factor := row[column]:
                for j, value in enumerate(table[pivot]):
                    if value:
                        row[j] -= factor * value
    return price[-1]


def ways(topology: Topology, s: int, t: int, ports: np.ndarray | None, seen: tuple[int, ...] = ()):
    """Every loopless path from s to t, as channels; by the next hops ``ports`` [t, v] if they are given."""
    if s == t:
        return [()]
    found = []
    for port, c in enumerate(range(topology.out_start[s], topology.out_start[s + 1])):
        v = int(topology.dst[c])
        if v not in (*seen, s) and (ports is None or int(ports[t, s]) >> port & 1):
            found += [(c, *rest) for rest in ways(topology, v, t, ports, (*seen, s))]
    return found


def exact(
    topology: Topology, matrix: np.ndarray, load: float | None = None, ports: np.ndarray | None = None
) -> Fraction:
    """Theta of the network for a demand between switches, or the largest total that crosses it at a load."""
    pairs = [(s, t) for s, t in zip(*map(np.ndarray.tolist, np.nonzero(matrix)), strict=True) if s != t]
    paths = [(k, way) for k, (s, t) in enumerate(pairs) for way in ways(topology, s, t, ports)]
    use = [[Fraction(c in way) for _, way in paths] for c in range(topology.channels)]
    room = [Fraction(float(value)) for value in topology.capacity]
    wanted = [Fraction(float(matrix[pair])) for pair in pairs]
    of_pair = [[Fraction(k == commodity) for commodity, _ in paths] for k in range(len(pairs))]
    if load is not None:
        offer = [Fraction(float(load)) * amount for amount in wanted]
        return maximise([Fraction(1)] * len(paths), use + of_pair, room + offer)
    serve = [[amount, *(-value for value in row)] for amount, row in zip(wanted, of_pair, strict=True)]
    rows = [[ZERO, *row] for row in use] + serve
    return maximise([Fraction(1)] + [ZERO] * len(paths), rows, room + [ZERO] * len(pairs))
