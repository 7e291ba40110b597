# SPDX-License-Identifier: Apache-2.0
"""When hosts create packets: integer inversion of geometric gaps, no logarithm, no floating point.

A host's candidate arrivals are a chain of positions in sub-ticks; the next follows from the last by
one block of draws. Hosts that send less than the busiest one keep each candidate with the ratio of
the two rates, so one table serves all hosts. Every candidate has a length, which is the packet's that it becomes; in
a burst of an on-off process the next one follows when the channel would have taken it.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Integers, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import (
    ARRIVAL,
    ARRIVAL_TAIL,
    THINNING,
    draw_out_of_line,
    paired,
    philox,
    philox_out_of_line,
    uniform,
)
from flitlab.models.rules.packets import Packets, length

BERNOULLI, POISSON, ONOFF = 0, 1, 2
KINDS = {"bernoulli": BERNOULLI, "poisson": POISSON, "onoff": ONOFF}

SUBTICK_BITS = 10
"""A Poisson process is drawn on a grid of 2**-10 ticks."""

LONGEST_RUN = 1 << 30
"""Ticks beyond which no engine runs; what would be created later is not looked for."""

_ONE = 1 << 63
_FULL = _ONE - 1
_GUIDE_BITS = 12
_GUIDE_SHIFT = 63 - _GUIDE_BITS
_LONGEST_TABLE = 4096
_ROUNDING = Fraction(1, 10**9)


class Arrivals(NamedTuple):
    """Tables of an arrival process, for :func:`next_arrival`.

    kind: BERNOULLI, POISSON or ONOFF. shift: log2 of positions in a tick. base: a chain begins at -base.
    coarse, fine: survival thresholds, int64 (see :func:`survivors`); coarse_guide, fine_guide: uint16 [4097].
    stop: threshold of the end of a burst (ONOFF). keep: int64 [hosts], thresholds of thinning; -1 never. end: position
    from which on it does not matter when something is created.
    """

    kind: int
    shift: int
    base: int
    coarse: Ints
    coarse_guide: Integers
    fine: Ints
    fine_guide: Integers
    stop: int
    keep: Ints
    end: int


def _threshold(probability: Fraction) -> int:
    return min(int(probability * _ONE), _FULL)


def _geometric(ratio: Fraction) -> Ints:
    """Thresholds of P(gap >= k) = ratio**k, k = 1 .. until e**-4 or the longest table."""
    scale = 1 << 192  # far finer than 63 bits, so the product of all factors is exact where it matters
    factor = int(ratio * scale)
    survive, table = scale, list[int]()
    while len(table) < _LONGEST_TABLE and (not table or table[-1] > _ONE >> 6):
        survive = survive * factor >> 192
        table.append(min(survive >> 129, _FULL))
    return np.array(table, np.int64)


def _truncated(ratio: Fraction, size: int) -> Ints:
    """Thresholds of a geometric variable cut at ``size``: P(k or more | less than size), k = 1 .. size - 1."""
    scale = 1 << 192
    factor, survive, powers = int(ratio * scale), scale, []
    for _ in range(size):
        survive = survive * factor >> 192
        powers.append(survive)
    last = powers[-1]
    return np.array([_threshold(Fraction(p - last, scale - last)) for p in powers[:-1]], np.int64)


def _guide(table: Ints) -> Integers:
    """Count what exceeds the words b << 51, uint16 [4097]: entry b and the next are an answer's bounds, mostly equal.

    The last word is one less, the greatest of all.
    """
    words = np.append(np.arange(1 << _GUIDE_BITS) << _GUIDE_SHIFT, _FULL)
    return np.searchsorted(-table, -words, side="left").astype(np.uint16)


def overload_error(kind: str, load: float, mean_flits: float, rate: Floats) -> str:
    """Why hosts cannot offer a load with packets of ``mean_flits``, '' if they can; see :func:`make_arrivals`."""
    peak_rate = Fraction(load) * Fraction(float(rate.max(initial=0.0)))
    if kind == "onoff" and peak_rate > 1 + _ROUNDING:
        return f"load {load:g} asks for more than a flit per tick and host, and an on-off host has its packets in a row"
    if peak_rate > Fraction(mean_flits) * (1 + _ROUNDING):
        return f"load {load:g} asks for more than one packet per tick and host"
    return ""


def make_arrivals(
    kind: str, load: float, mean_flits: float, rate: Floats, burst: float, ticks: int = LONGEST_RUN
) -> Arrivals:
    """Tables for an offered load.

    load: flits per tick of a host whose ``rate`` is 1. mean_flits: mean packet length. rate: float64
    [hosts], row sums of the demand matrix. burst: mean packets of an on-period. ticks: that matter.
    Raises ``ValueError`` if that is :func:`too_much`.
    """
    if problem := overload_error(kind, load, mean_flits, rate):
        raise ValueError(problem)
    peak = float(rate.max(initial=0.0))
    packets = min(Fraction(load) * Fraction(peak) / Fraction(mean_flits), Fraction(1))
    code, shift, base, stop = KINDS[kind], 0, 0, 0
    coarse = fine = np.zeros(0, np.int64)
    if packets == 0:
        keep = np.full(len(rate), -1, np.int64)
    else:
        rates, rate_index = np.unique(rate, return_inverse=True)
        keep = np.array([_threshold(Fraction(r) / Fraction(peak)) if r > 0 else -1 for r in rates], np.int64)[
            rate_index
        ]
        if code == BERNOULLI:
            base = 1
            coarse = _geometric(1 - packets)
        elif code == POISSON:
            shift = SUBTICK_BITS
            steps = 1 << shift
            ratio = steps / (steps + packets)  # gaps 0, 1, ... of mean steps / packets
            coarse, fine = _geometric(ratio**steps), _truncated(ratio, steps)
        else:
            pause = Fraction(burst) * (1 / packets - Fraction(mean_flits))
            if pause > 0:
                coarse, stop = _geometric(pause / (pause + 1)), _threshold(1 / Fraction(burst))
    return Arrivals(code, shift, base, coarse, _guide(coarse), fine, _guide(fine), stop, keep, ticks << shift)


def typical_gap(arrivals: Arrivals) -> float:
    """Return about how many ticks pass from one packet of the busiest host to the next, bursts apart."""
    return float(arrivals.coarse.sum(dtype=np.float64)) / _ONE


@kernel
def survivors(table: Ints, guide: Integers, word: Int) -> int:
    """How many entries of the descending ``table`` exceed ``word``."""
    bucket = word >> _GUIDE_SHIFT
    high, low = np.int64(guide[bucket]), np.int64(guide[bucket + 1])
    while low < high:
        middle = (low + high) >> 1
        if table[middle] > word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _geometric_gap(a: Arrivals, seed: Int, host: Int, counter: Int, word: Int, remaining: Int) -> int:
    """A gap in ticks; no more is added to one of ``remaining`` positions."""
    if len(a.coarse) == 0:
        return np.int64(0)
    gap, attempt = np.int64(0), np.int64(0)
    count = survivors(a.coarse, a.coarse_guide, word)
    while count == len(a.coarse) and gap << a.shift < remaining:  # a geometric variable has no memory: draw again
        gap += count
        word = draw_out_of_line(seed, ARRIVAL_TAIL, host, paired(np.int64(counter), attempt, np.int64(16)))
        count = survivors(a.coarse, a.coarse_guide, word)
        attempt += 1
    return gap + count


@kernel
def next_arrival(a: Arrivals, p: Packets, seed: Int, host: Int, counter: int, position: Int) -> tuple[int, int]:
    """The host's next packet after ``position`` (sub-ticks; start with -a.base): (its candidate's counter, position).

    p: :class:`~flitlab.models.rules.packets.Packets`, which say how long candidates are. ``counter`` is that of the
    first candidate to try; call again with the returned one plus 1. The tick of creation is ``position >> a.shift``;
    from ``a.end`` on, positions mean nothing but that.
    """
    return arrival_by(a, p, seed, host, counter, position, philox(seed, ARRIVAL, host, counter))


@kernel
def arrival_by(
    a: Arrivals, p: Packets, seed: Int, host: Int, counter: int, position: Int, block: tuple[int, int, int, int]
) -> tuple[int, int]:
    """Find a host's next packet as :func:`next_arrival` does, where the first candidate's block has been drawn.

    block: :func:`~flitlab.models.rules.draw.philox` of ``ARRIVAL``, ``host`` and ``counter``.
    """
    while True:
        x0, x1, x2, x3 = block
        word = uniform(x0, x1)
        remaining = a.end - position
        if a.kind == BERNOULLI:
            position += 1 + _geometric_gap(a, seed, host, counter, word, remaining)
        else:
            other = uniform(x2, x3)
            if a.kind == POISSON:
                gap = _geometric_gap(a, seed, host, counter, word, remaining) << a.shift
                position += gap + survivors(a.fine, a.fine_guide, other)
            else:
                if counter > 0:
                    position += length(p, seed, host, counter - 1)
                # every host starts in an off-period, so that they do not burst together
                if other < a.stop or counter == 0:
                    position += _geometric_gap(a, seed, host, counter, word, remaining)
        keep = a.keep[host]
        if keep == 0x7FFFFFFFFFFFFFFF or position >= a.end or draw_out_of_line(seed, THINNING, host, counter) < keep:
            return counter, position
        counter += 1
        block = philox_out_of_line(seed, ARRIVAL, host, counter)
