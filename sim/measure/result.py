# SPDX-License-Identifier: Apache-2.0
"""The result of a measured run, and its throughput over time."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import Flows

USE_DECIMALS = 8
"""Decimals of stored utilisations: power follows from them, also that of a few flits in millions of ticks."""

BINS = 100
"""Intervals of throughput over time, besides those that begin with an epoch."""


def stored_use(use: Floats) -> list[float]:
    """Return the utilisation of channels as ``detail`` has it, under ``channel_use``. use: float64 [channels]."""
    rounded: list[float] = np.round(use, USE_DECIMALS).tolist()
    return rounded


class StallError(Exception):
    """A stall that is a defect: packets wait and nothing moves, although a certificate excludes a deadlock."""


@dataclass(frozen=True)
class Result:
    """The result of a measured run.

    row: the measured columns of results.csv. detail: rows of further tables and data of figures, by name, JSON-able;
    :func:`~flitlab.sim.measure.measure.measure` adds ``compile_s``, CPU seconds of kernel compilation, which are not in
    ``cpu_s``. delivered, present: flits (of datagrams, bytes) delivered in the window, and in flight at its start.
    window: its ticks, in flit (or byte) times of a channel of capacity 1. capacity: float64 [channels], mean capacity
    of the channels between switches in the window with a timeline; None without. parts: the epochs of a timeline, from
    the beginning of the run. limited: whether a trace has not ended within ``measure.max_ticks``.
    """

    row: Row
    detail: JsonObject
    delivered: Flows
    present: Flows
    window: float
    capacity: Floats | None = field(default=None, kw_only=True)
    parts: "tuple[EpochTraffic, ...]" = field(default=(), kw_only=True)
    limited: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class FlowsResult(Result):
    """The result of a run of flows.

    throughput: float64 [flows], in the window, as a fraction of the NIC rate.
    """

    throughput: Floats


class EpochTraffic(NamedTuple):
    """Traffic delivered in an epoch of a run, and in flight at its start: as in :class:`Result`."""

    epoch: int
    delivered: Flows
    present: Flows
    window: float


def edges_until(timeline: Timeline, last: int) -> set[int]:
    """Return the bounds of the intervals of throughput over time up to ``last``; the network is constant in each."""
    even = (last * i // BINS for i in range(BINS + 1))
    return {*even, *(epoch.tick for epoch in timeline.epochs if epoch.tick < last)}


def interval(start: int, end: int, tick_ns: float | None, host_throughput: float, **counted: int) -> Row:
    """Return a row of throughput_time.csv.

    Parameters
    ----------
    start, end : int
        Bounds in ticks.
    tick_ns : float or None
        Duration of a tick; None if unknown.
    host_throughput : float
        Received by a host, as a fraction of the NIC rate.
    counted : int
        Other counters, by column.
    """
    us = {} if tick_ns is None else {"from_us": start * tick_ns / 1e3, "to_us": end * tick_ns / 1e3}
    return {"from_tick": start, "to_tick": end, **us, "host_throughput": host_throughput, **counted}
