# SPDX-License-Identifier: Apache-2.0
"""The times at which hosts create packets: integer inversion of geometric gaps, without logarithms or floating point.

The candidate arrivals of a host are a chain of positions in sub-ticks. Each follows from the last by one block of
draws. Hosts that send less than the busiest one keep each candidate with the ratio of the rates, so one table serves
all hosts. Every candidate has a length, that of its packet. In a burst of an on-off process the next candidate follows
when the channel could have taken the packet. A Markov process advances its state in every tick, on or off, and a host
that is on then creates a packet with a fixed chance.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Integers, Ints
from flitlab.models.jit import kernel, njit
from flitlab.models.rules.draw import Stream, draw_out_of_line, paired, philox, philox_out_of_line, uniform
from flitlab.models.rules.packets import Packets, destination, length
from flitlab.models.traffic.source import BurstRates

BERNOULLI, POISSON, ONOFF, MARKOV = 0, 1, 2, 3
KINDS = {"bernoulli": BERNOULLI, "poisson": POISSON, "onoff": ONOFF}

SUBTICK_BITS = 10
"""A Poisson process is drawn on a grid of 2**-10 ticks."""

LONGEST_RUN = 1 << 30
"""Ticks of the longest run. Later arrivals are not computed."""

_ONE = 1 << 63
_FULL = _ONE - 1
_GUIDE_BITS = 12
_GUIDE_SHIFT = 63 - _GUIDE_BITS
_LONGEST_TABLE = 4096
_ROUNDING = Fraction(1, 10**9)


class Markov(NamedTuple):
    """Tables of a Markov on-off process: survival thresholds of geometric variables, and thresholds of words.

    silent, silent_guide: ticks of an on-period without a packet, up to the next packet or the end. creates: that it is
    a packet. pause, pause_guide: ticks of an off-period, less 1. rate: that its first on-tick has a packet.
    """

    silent: Ints
    silent_guide: Integers
    creates: int
    pause: Ints
    pause_guide: Integers
    rate: int


class Arrivals(NamedTuple):
    """Tables of an arrival process, for :func:`next_arrival`.

    kind: BERNOULLI, POISSON, ONOFF or MARKOV. shift: log2 of positions per tick. base: a chain begins at -base. coarse,
    fine: survival thresholds, int64 (see :func:`survivors`); coarse_guide, fine_guide: uint16 [4097]. stop: threshold
    for the end of a burst (ONOFF). keep: int64 [hosts], thresholds of thinning; -1: never. end: position from which on
    arrivals do not matter. markov: tables of MARKOV, else None. flit_ticks: ticks of a flit on a host's channel
    (ONOFF).
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
    markov: Markov | None = None
    flit_ticks: int = 1


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
    """Guide table: for each word b << 51, how many entries exceed it, uint16 [4097].

    Two neighbouring entries bound an answer, and are mostly equal. The last word is one less, the greatest of all.
    """
    words = np.append(np.arange(1 << _GUIDE_BITS) << _GUIDE_SHIFT, _FULL)
    return np.searchsorted(-table, -words, side="left").astype(np.uint16)


def overload_error(
    kind: str, load: float, mean_flits: float, rate: Floats, burst: float | BurstRates = 8.0, flit_ticks: float = 1
) -> str:  # fmt: skip
    """Why hosts cannot offer a load; '' if they can.

    Parameters
    ----------
    kind: key of :data:`KINDS`.
    load: flits per tick of a host of rate 1.
    mean_flits: mean packet length.
    rate: float64 [hosts], row sums of the demand matrix.
    burst: of on-off hosts.
    flit_ticks: ticks of a flit on a host's channel.
    """
    peak_rate = Fraction(load) * Fraction(float(rate.max(initial=0.0)))
    if kind == "onoff" and isinstance(burst, BurstRates) and peak_rate > 0:
        try:
            burst.complete(peak_rate / Fraction(mean_flits))
        except ValueError as error:
            return f"load {load:g}: {error}"
        return ""
    if kind == "onoff" and not isinstance(burst, BurstRates) and peak_rate * Fraction(flit_ticks) > 1 + _ROUNDING:
        return f"load {load:g} asks for more than a host's channel takes, and an on-off host has its packets in a row"
    if peak_rate > Fraction(mean_flits) * (1 + _ROUNDING):
        return f"load {load:g} asks for more than one packet per tick and host"
    return ""


def make_arrivals(
    kind: str, load: float, mean_flits: float, rate: Floats, burst: float | BurstRates, ticks: int = LONGEST_RUN,
    flit_ticks: int = 1,
) -> Arrivals:  # fmt: skip
    """Tables of an arrival process for an offered load.

    Parameters
    ----------
    kind: key of :data:`KINDS`.
    load: flits per tick of a host of rate 1.
    mean_flits: mean packet length.
    rate: float64 [hosts], row sums of the demand matrix.
    burst: mean packets of an on-period (ONOFF), or its rates (MARKOV).
    ticks: length of the run.
    flit_ticks: ticks of a flit on a host's channel, as packets of a burst (ONOFF) follow each other.

    Returns
    -------
    The tables.

    Raises
    ------
    ValueError: the load exceeds what hosts can offer (:func:`overload_error`).
    """
    if problem := overload_error(kind, load, mean_flits, rate, burst, flit_ticks):
        raise ValueError(problem)
    peak = float(rate.max(initial=0.0))
    packets = min(Fraction(load) * Fraction(peak) / Fraction(mean_flits), Fraction(1))
    code, shift, base, stop, markov = KINDS[kind], 0, 0, 0, None
    coarse = fine = np.zeros(0, np.int64)
    if packets == 0:
        never = np.full(len(rate), -1, np.int64)
        return Arrivals(code, 0, 0, coarse, _guide(coarse), fine, _guide(fine), 0, never, ticks, None, flit_ticks)
    rates, rate_index = np.unique(rate, return_inverse=True)
    thresholds = [_threshold(Fraction(r) / Fraction(peak)) if r > 0 else -1 for r in rates]
    keep = np.array(thresholds, np.int64)[rate_index]
    if code == BERNOULLI:
        base = 1
        coarse = _geometric(1 - packets)
    elif code == POISSON:
        shift = SUBTICK_BITS
        steps = 1 << shift
        ratio = steps / (steps + packets)  # gaps 0, 1, ... of mean steps / packets
        coarse, fine = _geometric(ratio**steps), _truncated(ratio, steps)
    elif isinstance(burst, BurstRates):
        code, base, coarse = MARKOV, 1, _geometric(1 - packets)  # for typical_gap
        markov = _markov(*burst.complete(packets))
    else:
        pause = Fraction(burst) * (1 / packets - Fraction(mean_flits) * flit_ticks)
        if pause > 0:
            coarse, stop = _geometric(pause / (pause + 1)), _threshold(1 / Fraction(burst))
    return Arrivals(
        code, shift, base, coarse, _guide(coarse), fine, _guide(fine), stop, keep, ticks << shift, markov, flit_ticks
    )  # fmt: skip


def _markov(start: Fraction, end: Fraction, rate: Fraction) -> Markov:
    """Tables of a Markov process from its chances per tick."""
    silent, pause = _geometric((1 - end) * (1 - rate)), _geometric(1 - start)
    creates = (1 - end) * rate / (1 - (1 - end) * (1 - rate))
    return Markov(silent, _guide(silent), _threshold(creates), pause, _guide(pause), _threshold(rate))


def typical_gap(arrivals: Arrivals) -> float:
    """Approximate ticks between two packets of the busiest host, apart from bursts."""
    return float(arrivals.coarse.sum(dtype=np.float64)) / _ONE


@kernel
def survivors(table: Ints, guide: Integers, word: Int) -> int:
    """How many entries of a descending table exceed a word.

    Parameters
    ----------
    table: int64, descending.
    guide: uint16 [4097], guide table of ``table``.
    word: uniform integer in [0, 2**63).
    """
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
    """A geometric gap in ticks; it need not exceed the ``remaining`` positions."""
    if len(a.coarse) == 0:
        return np.int64(0)
    gap, attempt = np.int64(0), np.int64(0)
    count = survivors(a.coarse, a.coarse_guide, word)
    while count == len(a.coarse) and gap << a.shift < remaining:  # a geometric variable has no memory: draw again
        gap += count
        word = draw_out_of_line(seed, Stream.ARRIVAL_TAIL, host, paired(np.int64(counter), attempt, np.int64(16)))
        count = survivors(a.coarse, a.coarse_guide, word)
        attempt += 1
    return gap + count


@kernel
def _next_of_burst(m: Markov | None, seed: Int, host: Int, counter: Int, position: Int, end: Int) -> int:
    """The tick of the next packet of a Markov process after one in tick ``position``; at the start hosts are off.

    m: its tables; None: of other processes, the same position. Stops behind ``end``.
    """
    if m is None:
        return position
    is_on, draws = counter > 0, np.int64(0)
    while position < end:
        table, guide = (m.silent, m.silent_guide) if is_on else (m.pause, m.pause_guide)
        count = len(table)
        while count == len(table) and position < end:  # a geometric variable has no memory: draw again
            count = survivors(table, guide, _word_of_burst(seed, host, counter, draws))
            position += count
            draws += 1
        position += 1
        creates = _word_of_burst(seed, host, counter, draws) < (m.creates if is_on else m.rate)
        draws += 1
        if creates:
            break
        is_on = not is_on
    return position


@kernel
def _word_of_burst(seed: Int, host: Int, counter: Int, draws: Int) -> int:
    """A word for a candidate of a Markov process; draws: how many it has had."""
    return draw_out_of_line(seed, Stream.BURST, host, paired(np.int64(counter), draws, np.int64(16)))


@kernel
def next_arrival(a: Arrivals, p: Packets, seed: Int, host: Int, counter: int, position: Int) -> tuple[int, int]:
    """The host's next packet after a position.

    Parameters
    ----------
    a: the arrival process.
    p: packet lengths (:class:`~flitlab.models.rules.packets.Packets`).
    seed: of the run.
    host: the source host.
    counter: of the first candidate to try; for the next packet the returned one plus 1.
    position: position of the last packet, sub-ticks; -a.base at the start.

    Returns
    -------
    Counter and position of the candidate. Its tick of creation is ``position >> a.shift``; from ``a.end`` on, there is
    no packet.
    """
    return arrival_by(a, p, seed, host, counter, position, philox(seed, Stream.ARRIVAL, host, counter))


@kernel
def arrival_by(
    a: Arrivals, p: Packets, seed: Int, host: Int, counter: int, position: Int, block: tuple[int, int, int, int]
) -> tuple[int, int]:
    """The host's next packet as by :func:`next_arrival`, with the first candidate's block drawn already.

    Parameters
    ----------
    a: the arrival process.
    p: packet lengths (:class:`~flitlab.models.rules.packets.Packets`).
    seed: of the run.
    host: the source host.
    counter: of the first candidate to try.
    position: position of the last packet, sub-ticks.
    block: :func:`~flitlab.models.rules.draw.philox` of ``ARRIVAL``, ``host`` and ``counter``.

    Returns
    -------
    Counter and position of the candidate.
    """
    while True:
        x0, x1, x2, x3 = block
        word = uniform(x0, x1)
        remaining = a.end - position
        if a.kind == MARKOV:
            position = _next_of_burst(a.markov, seed, host, counter, position, a.end)
        elif a.kind == BERNOULLI:
            position += 1 + _geometric_gap(a, seed, host, counter, word, remaining)
        else:
            other = uniform(x2, x3)
            if a.kind == POISSON:
                gap = _geometric_gap(a, seed, host, counter, word, remaining) << a.shift
                position += gap + survivors(a.fine, a.fine_guide, other)
            else:
                if counter > 0:
                    position += length(p, seed, host, counter - 1) * a.flit_ticks
                # every host starts in an off-period, so that they do not burst together
                if other < a.stop or counter == 0:
                    position += _geometric_gap(a, seed, host, counter, word, remaining)
        keep = a.keep[host]
        if (
            keep == 0x7FFFFFFFFFFFFFFF
            or position >= a.end
            or draw_out_of_line(seed, Stream.THINNING, host, counter) < keep
        ):
            return counter, position
        counter += 1
        block = philox_out_of_line(seed, Stream.ARRIVAL, host, counter)


@njit
def draw_block(
    arrivals: Arrivals, packets: Packets, seed: int, host: int, sequence: int, counter: int, position: int, block: Ints
) -> tuple[int, int]:
    """Draw the next packets of a host.

    Parameters
    ----------
    arrivals, packets: when hosts create packets, and which.
    seed: of all draws.
    host: that creates them.
    sequence: number of the first packet.
    counter, position: of the arrival process, as :func:`next_arrival` takes them.
    block: int64 [packets, 3], filled with tick, destination and flits of each.

    Returns
    -------
    The counter and the position of the arrival process after them.
    """
    for i in range(len(block)):
        counter, position = next_arrival(arrivals, packets, seed, host, counter, position)
        block[i, 0] = position >> arrivals.shift
        block[i, 1] = destination(packets, seed, host, sequence + i)
        block[i, 2] = length(packets, seed, host, counter)
        counter += 1
    return counter, position
