# SPDX-License-Identifier: Apache-2.0
"""Bounds over all networks that a number of switches can be wired to, wherever their hosts are.

N switches have R ports each; a host takes a port, and a port without one makes ``split`` links of capacity 1 / split. A
switch of h hosts has at most d = (R - h) split links. C_k, the ordered pairs of different hosts within k hops, is at
most the least of these, since a product of two numbers is at most half of the sum of their squares:

* k = 0: sum n_h h**2 - H, with n_h switches of h hosts each;
* any k: sum n_h h**2 m_k(h) - H with m_k(h) = min(N, 1 + d (1 + g + ... + g**(k - 1))) and g = R split - 1;
* k = 1: C_0 + sum e_ab a b, with e_ab channels from switches of a to switches of b hosts;
* k >= 2: that and sum e_ab a**2 (d_b - 1) (1 + g + ... + g**(k - 2)).

All hops of all pairs are the sum over k >= 0 of H (H - 1) - C_k where that is positive. Its least value over n_h and
e_ab is a linear program. Whatever multipliers its solver returns, :func:`equipment_bound` computes from them, in whole
numbers, a value that no network undercuts: the solver only decides how good it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

MAX_PAIR_PORTS = 34
"""Ports up to which numbers of adjacent switches are variables; the program has ports**2 / 2 of them."""

MAX_LEVELS = 40
"""Hops that count at most: further ones would only add to the bound."""

UNIT = 1 << 40
"""Multipliers of the linear program are rounded to multiples of 1 / UNIT."""


@dataclass(frozen=True)
class EquipmentBound:
    """A lower bound on the hops between the hosts of any network of this equipment.

    switches, ports, hosts, split: of the equipment. hops: least sum of the hops of all ordered pairs of hosts, exact
    consequence of the multipliers. levels: multipliers of the bounds on C_k, as (k, row, multiple of 1 / UNIT), with
    row 0 for the bound by levels and 1 for that by adjacent switches. links: of the links of a switch of h hosts, in
    multiples of 1 / UNIT; empty without adjacent switches. per_host: of the number of hosts, likewise.
    """

    switches: int
    ports: int
    hosts: int
    split: int
    hops: Fraction
    levels: tuple[tuple[int, int, int], ...]
    links: tuple[int, ...]
    per_host: int

    @property
    def mean_hops(self) -> float:
        """Least mean hops between the switches of two different hosts, rounded down."""
        return _down(self.hops / max(self.hosts * (self.hosts - 1), 1))

    @property
    def throughput(self) -> float:
        """Largest theta of uniform traffic, and of a worst demand of the hose model, rounded up; inf without hops.

        A longest matching is at least as far as the mean pair, so it has no larger theta than this. Host channels are
        ignored.
        """
        if self.hops == 0:
            return float("inf")
        free = self.switches * self.ports - self.hosts
        return _up(Fraction(free * (self.hosts - 1)) / self.hops)


def _down(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) <= value else float(np.nextafter(near, -np.inf))


def _up(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))


@dataclass(frozen=True)
class _Program:
    """The coefficients of the bounds on C_k. All are whole numbers."""

    switches: int
    ports: int
    hosts: int
    split: int

    @property
    def growth(self) -> int:
        """New switches that a link leads to at most, after the first."""
        return self.ports * self.split - 1

    @property
    def counts(self) -> range:
        """Possible numbers of hosts of a switch, each with a port for a link left."""
        return range(min(self.ports - 1, self.hosts) + 1)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Numbers of hosts a <= b of two adjacent switches; none of equipment with too many ports."""
        if self.ports > MAX_PAIR_PORTS:
            return []
        return [(a, b) for a in self.counts for b in self.counts[a:]]

    def degree(self, hosts: int) -> int:
        """Most links of a switch of that many hosts."""
        return (self.ports - hosts) * self.split

    def reach(self, hops: int) -> int:
        """1 + g + ... + g**(hops - 1), or the number of switches if that is less."""
        total = 0
        for _ in range(hops):
            total = min(total * self.growth + 1, self.switches)
        return total

    def rows(self) -> Iterator[tuple[int, int]]:
        """(k, row) of the bounds on C_k."""
        needed = self.switches - 1
        for k in range(MAX_LEVELS):
            yield k, 0
            if k and self.pairs:
                yield k, 1
            if self.reach(k) >= needed:
                return

    def of_count(self, k: int, row: int, hosts: int) -> int:
        """Coefficient of n_h in the bound on C_k + H."""
        if row or k == 0:
            return hosts**2
        return hosts**2 * min(self.switches, 1 + self.degree(hosts) * self.reach(k))

    def of_pair(self, k: int, a: int, b: int) -> int:
        """Coefficient of e_ab + e_ba, for one channel in either direction, in the second bound on C_k."""
        further = self.reach(k - 1)
        return 2 * a * b + further * (a**2 * (self.degree(b) - 1) + b**2 * (self.degree(a) - 1))


def equipment_bound(switches: int, ports: int, hosts: int, split: int = 1) -> EquipmentBound:
    """Compute a lower bound on the hops between hosts over all networks of some equipment.

    Parameters
    ----------
    switches: N, of identical switches.
    ports: R, of a switch.
    hosts: H, each at a port of some switch.
    split: links that a port without a host makes, each of capacity 1 / split.

    Raises
    ------
    ValueError: a number is below 1, or the hosts and the links that connect the switches need more ports.

    Source: the levels are those of Cerf, Cowan, Mullin and Stanton, Networks 4, 1974, doi:10.1002/net.3230040405, here
    for any placement of hosts; docs/bounds.md has the proof.
    """
    if min(switches, ports, hosts, split) < 1:
        raise ValueError("switches, ports, hosts and split must be 1 or more")
    if hosts > most_hosts(switches, ports, split):
        raise ValueError(f"{switches} switches of {ports} ports cannot be connected and have {hosts} hosts")
    return _solved(switches, ports, hosts, split)


def bound_by_multipliers(
    switches: int, ports: int, hosts: int, split: int, levels: Sequence[tuple[int, int, float]],
    links: Sequence[float], per_host: float,
) -> EquipmentBound:  # fmt: skip
    """Compute the bound that given multipliers prove, in whole numbers and without a solver.

    Parameters
    ----------
    switches, ports, hosts, split: as in :func:`equipment_bound`.
    levels: multipliers of the bounds on C_k, as (k, row, multiplier), as in :class:`EquipmentBound`.
    links: multiplier of the links of a switch of h hosts; of any length if no row is 1.
    per_host: that of the number of hosts.

    Raises
    ------
    ValueError: as :func:`equipment_bound`; a multiplier is not finite, of no bound, or there are too few.
    """
    if min(switches, ports, hosts, split) < 1 or hosts > most_hosts(switches, ports, split):
        raise ValueError(f"{switches} switches of {ports} ports cannot be connected and have {hosts} hosts")
    if switches == 1 or hosts == 1:
        return EquipmentBound(switches, ports, hosts, split, Fraction(0), (), (), 0)
    program = _Program(switches, ports, hosts, split)
    known = set(program.rows())
    if any((k, row) not in known for k, row, _ in levels):
        raise ValueError("a multiplier is of no bound")
    if not np.isfinite([*(y for _, _, y in levels), *links, per_host]).all():
        raise ValueError("a multiplier is not finite")
    if any(row for _, row, _ in levels) and len(links) != len(program.counts):
        raise ValueError(f"{len(program.counts)} multipliers of links are needed")
    return _certified(program, levels, links, per_host)


def most_hosts(switches: int, ports: int, split: int = 1) -> int:
    """Compute the most hosts of connected switches: N - 1 links have two ends, and a port makes ``split`` ends.

    Parameters
    ----------
    switches, ports, split: as in :func:`equipment_bound`.
    """
    if switches == 1:
        return ports
    return max(0, switches * ports - max(switches, -(-2 * (switches - 1) // split)))


@lru_cache(maxsize=20_000)
def _solved(switches: int, ports: int, hosts: int, split: int) -> EquipmentBound:
    if switches == 1 or hosts == 1:
        return EquipmentBound(switches, ports, hosts, split, Fraction(0), (), (), 0)
    program = _Program(switches, ports, hosts, split)
    return _certified(program, *_multipliers(program))


def _multipliers(program: _Program) -> tuple[list[tuple[int, int, float]], list[float], float]:
    """Multipliers of the rows, of the links, and of the number of hosts, by HiGHS."""
    rows, counts, pairs, size = list(program.rows()), program.counts, program.pairs, program.hosts
    levels = rows[-1][0] + 1
    scale = float(size**2)  # pairs as shares of all
    wide = np.array([[program.of_count(k, row, h) / scale for h in counts] for k, row in rows])
    pair = np.array([[program.of_pair(k, a, b) / scale if row else 0.0 for a, b in pairs] for k, row in rows])
    level = -np.eye(levels)[[k for k, _ in rows]]
    # missing pairs of level k are at least 1 - C_k: -n - e - u <= -1
    blocks = [[sparse.csr_array(-wide), sparse.csr_array(-pair.reshape(len(rows), -1)), sparse.csr_array(level)]]
    upper = [-np.ones(len(rows))]
    if pairs:
        column = np.arange(len(pairs))
        ends = sparse.coo_array((np.ones(2 * len(pairs)), (np.ravel(pairs, "F"), np.tile(column, 2))))
        degrees = sparse.diags_array([-float(program.degree(h)) for h in counts])
        blocks.append([sparse.csr_array(degrees), ends.tocsr(), sparse.csr_array((len(counts), levels))])
        upper.append(np.zeros(len(counts)))
    else:
        blocks = [[blocks[0][0], blocks[0][2]]]
    variables = len(counts) + len(pairs) + levels
    cost = np.append(np.zeros(variables - levels), np.ones(levels))
    equal = np.zeros((2, variables))
    equal[0, : len(counts)], equal[1, : len(counts)] = 1, np.arange(len(counts))
    optimum = linprog(
        cost, A_ub=sparse.block_array(blocks, format="csr"), b_ub=np.concatenate(upper), A_eq=equal,
        b_eq=[program.switches, size], method="highs",
    )  # fmt: skip
    if optimum.status != 0:  # a bound by the first level needs no program
        return [(0, 0, 1.0)], [0.0] * len(counts), 0.0
    marginals, per_host = -optimum.ineqlin.marginals, float(-optimum.eqlin.marginals[1] * scale)
    of_rows = [(*one, float(y)) for one, y in zip(rows, marginals, strict=False)]
    return of_rows, list(marginals[len(rows) :] * scale), per_host


def _certified(
    program: _Program, levels: Sequence[tuple[int, int, float]], links: Sequence[float], per_host: float
) -> EquipmentBound:
    """The bound that the multipliers prove; all sums are whole numbers, in multiples of 1 / UNIT."""
    left = dict.fromkeys(range(MAX_LEVELS), UNIT)
    weights: list[tuple[int, int, int]] = []
    for k, row, y in levels:
        weight = min(left[k], max(0, int(y * UNIT)))
        left[k] -= weight
        if weight:
            weights.append((k, row, weight))
    by_pairs = [(k, weight) for k, row, weight in weights if row]
    price = [max(0, int(y * UNIT)) for y in links]
    needed = [
        (a, b, sum(weight * program.of_pair(k, a, b) for k, weight in by_pairs)) for a, b in program.pairs if by_pairs
    ]
    # channels of a and b hosts, one in either direction, take one link of each: their price must cover what they add
    short = max((gain - price[a] - price[b] for a, b, gain in needed), default=0)
    price = [y + max(0, -(-short // 2)) for y in price] if by_pairs else []
    slope = int(per_host * UNIT)
    each = max(
        sum(weight * program.of_count(k, row, h) for k, row, weight in weights)
        + (price[h] * program.degree(h) if price else 0)
        - slope * h
        for h in program.counts
    )
    total = sum(weight for _, _, weight in weights) * program.hosts**2 - each * program.switches - slope * program.hosts
    return EquipmentBound(
        program.switches, program.ports, program.hosts, program.split, Fraction(max(total, 0), UNIT), tuple(weights),
        tuple(price), slope,
    )  # fmt: skip


def least_switches(hosts: int, ports: int, throughput: float, split: int = 1) -> int:
    """Compute the least number of switches whose bound reaches a throughput; no fewer reach it with any wiring.

    The bound grows with the switches, as further ones need not be wired: so the bound of one switch less proves it.

    Parameters
    ----------
    hosts, ports, split: as in :func:`equipment_bound`.
    throughput: theta of uniform traffic or of a worst demand; at most 1 counts, the rate of hosts.

    Raises
    ------
    ValueError: switches of so few ports cannot be connected and have hosts.
    """
    target = min(throughput, 1.0)

    def reaches(switches: int) -> bool:
        if hosts > most_hosts(switches, ports, split):
            return False
        return equipment_bound(switches, ports, hosts, split).throughput >= target

    if hosts <= ports:
        return 1
    if ports * split < 3:
        raise ValueError(f"switches of {ports} ports cannot connect {hosts} hosts")
    low, high = 1, 2
    while not reaches(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def host_aspl_bound(hosts: int, ports: int) -> tuple[float, int]:
    """Compute a lower bound on the mean hops from host to host, channels of hosts included, and its switches.

    The Order/Radix Problem asks for the network of least host-to-host mean distance, with any number of switches. The
    bound falls with the number of switches until further ones are of no use; the least such number is returned.

    Parameters
    ----------
    hosts: number of hosts.
    ports: of a switch.

    Raises
    ------
    ValueError: switches of so few ports cannot be connected and have hosts.

    Source: the problem is that of Yasudo, Koibuchi, Nakano, Matsutani and Amano, IEEE TPDS 30, 2019,
    doi:10.1109/TPDS.2018.2864286.
    """
    first = least_switches(hosts, ports, 0.0)
    last = max(first, hosts)
    least = equipment_bound(last, ports, hosts).mean_hops
    low, high = first - 1, last
    while high - low > 1:
        middle = (low + high) // 2
        enough = equipment_bound(middle, ports, hosts).mean_hops <= least * (1 + 1e-9)
        low, high = (low, middle) if enough else (middle, high)
    return 2 + least, high
