# SPDX-License-Identifier: Apache-2.0
"""Channels of different speed: the ticks that a flit takes on each channel."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import isinf, lcm
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology

MAX_FLIT_TICKS = 256
"""The most ticks that a flit takes on a channel."""

_ROUNDING = 1e-6  # ratios p / q of numbers up to 256 differ by at least 1.5e-5: capacities may be rounded to 6 digits


class FlitTimes(NamedTuple):
    """Ticks that a flit takes on each channel. A tick is the greatest common divisor of all flit times.

    channel: int64 [channels]. host: of every injection and ejection channel. unit: the capacity of a channel that moves
    a flit per tick.
    """

    channel: Ints
    host: int
    unit: Fraction

    @property
    def all_one(self) -> bool:
        """Whether every channel moves one flit per tick."""
        return self.host == 1 and bool((self.channel == 1).all())


UNIT = "flits_per_tick"
"""Note of a topology whose capacities are in flits per tick: the capacity, as specified, of one flit per tick."""


@lru_cache(maxsize=64)
def flit_times(topology: Topology) -> FlitTimes:
    """Return the flit times of the channels of a topology.

    Raises
    ------
    SpecError: host channels are infinite, or a flit time exceeds :data:`MAX_FLIT_TICKS`.
    """
    if isinf(topology.host_capacity):
        raise SpecError(
            "must be finite in a simulation (.inf is for experiment: ceilings)", key="topology.host_capacity"
        )
    ticks = _ticks_of(np.append(topology.capacity, topology.host_capacity))
    if ticks is None:
        raise _too_fine(topology)
    fastest = max(float(topology.capacity.max(initial=0.0)), topology.host_capacity)
    short = Fraction(fastest).limit_denominator(MAX_FLIT_TICKS)
    capacity = short if abs(float(short) / fastest - 1) <= _ROUNDING else Fraction(repr(fastest))
    return FlitTimes(ticks[:-1], int(ticks[-1]), capacity * int(ticks.min()))


@lru_cache(maxsize=64)
def in_flits_per_tick(topology: Topology) -> Topology:
    """Return a topology with its capacities in flits per tick; itself if they are.

    Raises
    ------
    SpecError: as :func:`flit_times`.
    """
    channel, host, unit = flit_times(topology)
    if unit == 1 and bool((topology.capacity == 1 / channel).all()) and topology.host_capacity == 1 / host:
        return topology
    notes = {**topology.notes, UNIT: str(unit)}
    return replace(topology, capacity=1 / channel, host_capacity=1 / host, notes=notes)


def capacity_unit(topology: Topology) -> Fraction:
    """Return the capacity, as specified, of a channel that moves a flit per tick; 1 if flit times are not defined."""
    try:
        return Fraction(topology.notes.get(UNIT, 1)) * flit_times(topology).unit
    except SpecError:
        return Fraction(1)


def _ticks_of(capacity: Floats) -> Ints | None:
    """Ticks of a flit on channels, int64 [n]; None if one takes too many. capacity: float64 [n]."""
    capacities, index = np.unique(capacity, return_inverse=True)
    slowdown = [Fraction(float(capacities[-1]) / c).limit_denominator(MAX_FLIT_TICKS) for c in capacities.tolist()]
    common = lcm(*(ratio.denominator for ratio in slowdown))
    error = np.array([float(ratio) for ratio in slowdown]) * capacities / capacities[-1] - 1
    if (np.abs(error) > _ROUNDING).any() or slowdown[0] * common > MAX_FLIT_TICKS:
        return None
    return np.array([int(ratio * common) for ratio in slowdown], np.int64)[index]


def _too_fine(topology: Topology) -> SpecError:
    """The error of capacities whose ratios need too many ticks, with the nearest that do not."""
    capacities = np.unique(np.append(topology.capacity, topology.host_capacity))
    slowdown = capacities[-1] / capacities
    best, error = slowdown, np.inf
    for base in range(1, MAX_FLIT_TICKS + 1):
        ticks = np.clip(np.rint(slowdown * base), base, MAX_FLIT_TICKS)
        if (off := float(np.abs(ticks / (slowdown * base) - 1).max())) < error - 1e-12:
            best, error = ticks, off
    near = best.min() * capacities[-1] / best
    of_hosts = topology.channels > 0 and _ticks_of(topology.capacity) is not None
    if topology.channels == 0 or (of_hosts and topology.host_capacity != 1):
        key = "topology.host_capacity"
    else:
        key = "topology.capacity_of" if "capacity_of" in topology.notes else "topology.capacity"
    problem = (
        f"capacities {_listed(capacities)} need more than {MAX_FLIT_TICKS} ticks for a flit on the slowest channel, "
        f"host channels included, in ticks that divide all flit times; the nearest that do not: {_listed(near)} "
        f"({', '.join(f'{t:g}' for t in best[::-1])} ticks a flit)"
    )
    if of_hosts:
        hosts = f"topology.host_capacity, {topology.host_capacity:.7g}"
        problem += f"; channels between switches need fewer: {hosts}, is in the unit of their capacities"
    return SpecError(problem, key=key)


def _listed(capacities: Floats, most: int = 8) -> str:
    """Capacities as text, the greatest first."""
    texts = [f"{c:.7g}" for c in capacities[::-1]]
    return ", ".join(texts if len(texts) <= most else [*texts[: most - 1], "...", texts[-1]])
