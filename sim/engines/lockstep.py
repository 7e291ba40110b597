# SPDX-License-Identifier: Apache-2.0
"""Two runs of hosts with transports in lock-step: their counters and every received packet are compared."""

from dataclasses import fields
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.sim.engines.base import ApplicationRun, EngineMismatch, Execution, ProgramStatus


class TracedRun(ApplicationRun, Protocol):
    """A run with counters and a trace of the received packets.

    session: the simulated session. Counters are a dataclass of numbers and arrays with a ``tick``. A trace is a named
    tuple of int64 arrays [packets]: tick of arrival, flow or subflow, and number within it.
    """

    session: Any

    def counters(self) -> Any: ...

    def trace(self) -> Any: ...


R = TypeVar("R", bound=TracedRun)


class Lockstep(Generic[R]):
    """Two runs side by side. Reading counters or operations compares them, and all received packets."""

    def __init__(self, compiled: R, reference: R):
        self._compiled = compiled
        self._reference = reference

    @property
    def session(self) -> Any:
        return self._compiled.session

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def counters(self) -> Any:
        compare_traces(self.trace(), self._reference.trace())
        ours = self._compiled.counters()
        compare_counters(ours, self._reference.counters())
        return ours

    def done(self) -> bool:
        return self._compiled.done()

    @property
    def latest(self) -> int:
        return self._compiled.latest

    def program_status(self) -> ProgramStatus:
        ours, theirs = self._compiled.program_status(), self._reference.program_status()
        if ours != theirs:
            raise EngineMismatch(f"engines differ in the status of a program: compiled {ours}, reference {theirs}")
        return ours

    def execution(self) -> Execution:
        self.counters()
        ours = self._compiled.execution()
        compare_fields(ours, self._reference.execution(), "in operations")
        return ours

    def carried(self) -> Ints | Floats:
        ours, theirs = self._compiled.carried(), self._reference.carried()
        if not np.array_equal(ours, theirs):
            raise EngineMismatch("engines differ in the flits that channels carried")
        return ours

    def trace(self) -> Any:
        return self._compiled.trace()


def compare_traces(compiled: Any, reference: Any) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` at the first packet in which two traces differ."""
    ours, theirs = np.column_stack(compiled), np.column_stack(reference)
    common = min(len(ours), len(theirs))
    differ = np.flatnonzero((ours[:common] != theirs[:common]).any(axis=1))
    if len(differ) or len(ours) != len(theirs):
        place, owner = int(differ[0]) if len(differ) else common, compiled._fields[1]
        said = [f"{name}: {_packet(rows, place, owner)}" for name, rows in (("compiled", ours), ("reference", theirs))]
        raise EngineMismatch("engines differ; first: " + "; ".join(said))


def _packet(rows: Ints, place: int, owner: str) -> str:
    if place >= len(rows):
        return "no such packet received"
    tick, of, number = rows[place].tolist()
    return f"packet {number} of {owner} {of} received at {tick}"


def compare_counters(compiled: Any, reference: Any) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` that names the first counter that differs."""
    compare_fields(compiled, reference, f"at tick {compiled.tick}")


def compare_fields(compiled: Any, reference: Any, where: str) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` at the first difference of two dataclasses.

    compiled, reference: dataclasses of numbers and arrays. where: where they differ, for the message.
    """
    for field in fields(compiled):
        a, b = (np.asarray(getattr(side, field.name)) for side in (compiled, reference))
        if not np.array_equal(a, b):
            place = np.argwhere(a != b)[0]
            raise EngineMismatch(
                f"engines differ {where}: {field.name}{place.tolist()}: "
                f"compiled {a[tuple(place)]}, reference {b[tuple(place)]}"
            )
