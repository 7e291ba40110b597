# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv for power and energy, where ``outputs.energy`` asks for them."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from flitlab.models.layout.energy import PARTS, Power, power
from flitlab.models.topology.flit_times import UNIT, flit_times
from flitlab.sim.measure.columns.registry import Column, Derive, Table, derived
from flitlab.sim.measure.rows import MeasuredPoint, number

OF = {
    "switches": "switches", "links": "the transceivers of links between switches", "nics": "NICs",
}  # fmt: skip
"""Part of a network -> what draws its power."""


def received_gbps(point: MeasuredPoint, gbps: float) -> float:
    """Traffic that all hosts receive together, in Gbit/s; NaN if the run has none. gbps: rate of capacity 1."""
    scenario, row = point.scenario, point.row
    topology = scenario.topology
    if scenario.counted == "packets":
        return number(row, "accepted") * topology.physical_hosts * float(flit_times(topology).unit) * gbps
    if scenario.counted == "flows":
        return number(row, "host_throughput") * topology.hosts * topology.host_capacity * gbps
    time = number(row, "makespan_ns")
    return 8 * number(row, "bytes") / time if time > 0 else math.nan


def rate(point: MeasuredPoint) -> float:
    """Gbit/s of a channel of capacity 1 of the scenario's topology, whose capacities may be in flits per tick."""
    assert point.energy is not None
    return point.energy.gbps * float(Fraction(point.scenario.topology.notes.get(UNIT, 1)))


def parts_of(point: MeasuredPoint) -> dict[str, Power] | None:
    """The mean power of each part of the network over a window or run; None where it is not asked for or known."""
    topology, use = point.scenario.topology, point.detail.get("channel_use", [])
    if point.energy is None or len(use) != topology.channels:
        return None
    gbps = rate(point)
    delivered = received_gbps(point, gbps)
    if not math.isfinite(delivered):
        return None
    sent = np.asarray(use, float)
    if point.scenario.counted == "packets":
        sent = sent * float(flit_times(topology).unit)
    elif point.scenario.counted == "programs":
        sent = sent * topology.capacity
    return power(topology, sent, delivered / gbps, point.energy.prices, gbps)


def seconds(point: MeasuredPoint) -> float:
    """Length of a window or run; NaN if the time of a flit is unknown."""
    if point.scenario.counted == "packets":
        return math.nan if point.flit_ns is None else number(point.row, "ticks") * point.flit_ns * 1e-9
    return number(point.row, "seconds") if point.scenario.counted == "flows" else number(point.row, "makespan_ns") / 1e9


def _total(point: MeasuredPoint, names: Sequence[str] = PARTS) -> float | None:
    parts = parts_of(point)
    return None if parts is None else sum(parts[name].total for name in names)


def _idle(point: MeasuredPoint, names: Sequence[str] = PARTS) -> float | None:
    parts = parts_of(point)
    return None if parts is None else sum(parts[name].idle for name in names)


def _per_bit(point: MeasuredPoint) -> float | None:
    total = _total(point)
    delivered = 0.0 if total is None else received_gbps(point, rate(point))
    return None if total is None or not delivered else 1e3 * total / delivered


def _energy(point: MeasuredPoint) -> float | None:
    total, time = _total(point), seconds(point)
    return None if total is None or not math.isfinite(time) else total * time


KEY = "with [`outputs.energy`](howto/energy.md)"
TABLES: tuple[Table, ...] = ("packets", "flows", "programs")


def _columns() -> Iterator[tuple[str, str, str, str, Derive, str]]:
    """Name, meaning, unit, label, function and console heading of each column."""
    yield "power_w", "Mean power of switches, transceivers and NICs", "W", "power", _total, "power (W)"
    yield "idle_w", "The part of `power_w` that is drawn without traffic", "W", "idle power", _idle, ""
    for part in PARTS:
        yield f"{part}_w", f"Mean power of {OF[part]}", "W", f"power of {part}", partial(_total, names=(part,)), ""
        without = f"The part of `{part}_w` that is drawn without traffic"
        yield f"{part}_idle_w", without, "W", f"idle power of {part}", partial(_idle, names=(part,)), ""
    yield "pj_per_bit", "`power_w` over the bits that hosts receive", "pJ/bit", "energy per bit", _per_bit, "pJ/bit"
    whole = "`power_w` times the length of the window or run, if the time of a flit is known"
    yield "energy_j", whole, "J", "energy", _energy, ""


for _table in TABLES:
    for _name, _meaning, _unit, _label, _derive, _summary in _columns():
        if _table == "programs":  # the console shows their shares only
            _summary = ""
        _one = Column(_table, _name, f"{_meaning} ({KEY}).", _unit, _label, False, f"{_label} ({_unit})", _summary)
        derived(_one)(_derive)
