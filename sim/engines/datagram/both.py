"""Two datagram runs, compared packet by packet."""

from dataclasses import fields
from typing import Any

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.transport.session import Session
from flitlab.sim.engines.base import EngineMismatch, Execution, Standing
from flitlab.sim.engines.datagram.base import Counters, DatagramApplicationRun, Trace


class BothDatagrams:
    """Two runs of datagrams in lock-step; every look at the counters compares all packets.

    See :class:`flitlab.sim.engines.datagram.base.DatagramApplicationRun`.
    """

    def __init__(self, compiled: DatagramApplicationRun, reference: DatagramApplicationRun):
        self._compiled = compiled
        self._reference = reference

    @property
    def given(self) -> Session:
        return self._compiled.given

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def counters(self) -> Counters:
        compare_traces(self.trace(), self._reference.trace())
        ours = self._compiled.counters()
        compare_counters(ours, self._reference.counters())
        return ours

    def in_flight(self) -> Ints:
        return self._compiled.in_flight()

    def trace(self) -> Trace:
        return self._compiled.trace()

    def done(self) -> bool:
        return self._compiled.done()

    @property
    def latest(self) -> int:
        return self._compiled.latest

    def standing(self) -> Standing:
        return self._compiled.standing()

    def execution(self) -> Execution:
        ours = self._compiled.execution()
        _compare(ours, self._reference.execution(), "in operations")
        return ours

    def carried(self) -> Ints | Floats:
        return self._compiled.carried()


def compare_traces(compiled: Trace, reference: Trace) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` at the first packet in which the traces differ."""
    ours, theirs = np.column_stack(compiled), np.column_stack(reference)
    common = min(len(ours), len(theirs))
    differ = np.flatnonzero((ours[:common] != theirs[:common]).any(axis=1))
    if len(differ) or len(ours) != len(theirs):
        place = int(differ[0]) if len(differ) else common
        said = [_packet(name, rows, place) for name, rows in (("compiled", ours), ("reference", theirs))]
        raise EngineMismatch("engines differ; first: " + "; ".join(said))


def _packet(name: str, rows: Ints, place: int) -> str:
    if place >= len(rows):
        return f"{name}: no such packet received"
    tick, subflow, sequence = rows[place].tolist()
    return f"{name}: packet {sequence} of subflow {subflow} received at {tick}"


def compare_counters(compiled: Counters, reference: Counters) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` that names the first counter that differs."""
    _compare(compiled, reference, f"at tick {compiled.tick}")


def _compare(compiled: Any, reference: Any, where: str) -> None:
    """Raise at the first difference of two dataclasses of numbers and arrays; where: said in the message."""
    for field in fields(compiled):
        a, b = (np.asarray(getattr(side, field.name)) for side in (compiled, reference))
        if not np.array_equal(a, b):
            place = np.argwhere(a != b)[0]
            raise EngineMismatch(
                f"engines differ {where}: {field.name}{place.tolist()}: "
                f"compiled {a[tuple(place)]}, reference {b[tuple(place)]}"
            )
