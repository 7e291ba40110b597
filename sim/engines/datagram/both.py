"""Two datagram runs, compared packet by packet."""

from dataclasses import fields

import numpy as np

from sim.engines.base import EngineMismatch
from sim.engines.datagram.base import Counters, DatagramRun, Trace


class BothDatagrams:
    """Two runs in lock-step; every look at the counters compares all packets."""

    def __init__(self, compiled: DatagramRun, reference: DatagramRun):
        self._compiled = compiled
        self._reference = reference

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def counters(self) -> Counters:
        compare_traces(self.trace(), self._reference.trace())
        ours = self._compiled.counters()
        compare_counters(ours, self._reference.counters())
        return ours

    def in_flight(self) -> np.ndarray:
        return self._compiled.in_flight()

    def trace(self) -> Trace:
        return self._compiled.trace()


def compare_traces(compiled: Trace, reference: Trace) -> None:
    """Raise :class:`~sim.engines.base.EngineMismatch` at the first packet in which the traces differ."""
    ours, theirs = np.column_stack(compiled), np.column_stack(reference)
    common = min(len(ours), len(theirs))
    differ = np.flatnonzero((ours[:common] != theirs[:common]).any(axis=1))
    if len(differ) or len(ours) != len(theirs):
        place = int(differ[0]) if len(differ) else common
        said = [_packet(name, rows, place) for name, rows in (("compiled", ours), ("reference", theirs))]
        raise EngineMismatch("engines differ; first: " + "; ".join(said))


def _packet(name: str, rows: np.ndarray, place: int) -> str:
    if place >= len(rows):
        return f"{name}: no such packet received"
    tick, subflow, sequence = rows[place].tolist()
    return f"{name}: packet {sequence} of subflow {subflow} received at {tick}"


def compare_counters(compiled: Counters, reference: Counters) -> None:
    """Raise :class:`~sim.engines.base.EngineMismatch` that names the first counter that differs."""
    for field in fields(Counters):
        a, b = (np.asarray(getattr(counters, field.name)) for counters in (compiled, reference))
        if not np.array_equal(a, b):
            where = np.argwhere(a != b)[0]
            raise EngineMismatch(
                f"engines differ at tick {compiled.tick}: {field.name}{where.tolist()}: "
                f"compiled {a[tuple(where)]}, reference {b[tuple(where)]}"
            )
