# SPDX-License-Identifier: Apache-2.0
"""Runs of hosts with transports, and two of them in lock-step: counters and every received packet are compared."""

from dataclasses import fields
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.session import Session
from flitlab.sim.engines.base import ApplicationRun, EngineMismatch, Execution, MessageDropped, ProgramStatus

S = TypeVar("S", Session, SpraySession)
"""The session of a run: of mode datagram, or of mode spray."""


class Trace(NamedTuple):
    """Every untrimmed data packet received, in order: int64 [packets] each.

    number: in its subflow. A sprayed flow is one subflow.
    """

    tick: Ints
    subflow: Ints
    number: Ints


class TransportRun(ApplicationRun, Protocol):
    """A simulation of hosts with transports; of a program, an :class:`~flitlab.sim.engines.base.ApplicationRun`.

    session: the simulated session. Counters are a dataclass of numbers and arrays with a ``tick``. ``carried`` counts
    ticks for which each channel has been sending.
    """

    session: Any

    def counters(self) -> Any:
        """All counters, copied."""

    def trace(self) -> Trace:
        """The packets received so far. Raises ``ValueError`` unless the run was started with ``trace=True``."""

    def deadlock(self) -> tuple[int, ...]:
        """The ports of a cycle of paused servers if no packet can move any more, in order; else ()."""


def check_lossless(dropped: int) -> None:
    """Raise :class:`~flitlab.sim.engines.base.MessageDropped` if a packet of a program without retransmission was
    dropped.

    dropped: packets dropped or trimmed.
    """
    if dropped:
        raise MessageDropped


class Lockstep:
    """Two runs side by side. Reading counters or operations compares them, and all received packets."""

    def __init__(self, compiled: Any, reference: Any):
        self._compiled = compiled
        self._reference = reference

    @property
    def session(self) -> Any:
        return self._compiled.session

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def advance_to_end(self, until: int) -> None:
        self._compiled.advance_to_end(until)
        self._reference.advance_to_end(until)

    def counters(self, **what: bool) -> Any:
        compare_traces(self.trace(), self._reference.trace())
        ours = self._compiled.counters(**what)
        compare_counters(ours, self._reference.counters(**what))
        return ours

    def pauses(self) -> Ints | None:
        pauses: Ints | None = self._compiled.pauses()
        return pauses

    def in_flight(self) -> Ints:
        in_flight: Ints = self._compiled.in_flight()
        return in_flight

    def ended(self) -> bool:
        return bool(self._compiled.ended())

    def deadlock(self) -> tuple[int, ...]:
        ours: tuple[int, ...] = self._compiled.deadlock()
        if ours != (theirs := self._reference.deadlock()):
            raise EngineMismatch(f"engines differ in a deadlock: compiled {ours}, reference {theirs}")
        return ours

    def done(self) -> bool:
        return bool(self._compiled.done())

    @property
    def latest(self) -> int:
        return int(self._compiled.latest)

    def program_status(self) -> ProgramStatus:
        ours: ProgramStatus = self._compiled.program_status()
        if ours != (theirs := self._reference.program_status()):
            raise EngineMismatch(f"engines differ in the status of a program: compiled {ours}, reference {theirs}")
        return ours

    def execution(self) -> Execution:
        self.counters()
        ours: Execution = self._compiled.execution()
        compare_fields(ours, self._reference.execution(), "in operations")
        return ours

    def carried(self) -> Ints | Floats:
        ours: Ints | Floats = self._compiled.carried()
        if not np.array_equal(ours, self._reference.carried()):
            raise EngineMismatch("engines differ in the flits that channels carried")
        return ours

    def trace(self) -> Trace:
        trace: Trace = self._compiled.trace()
        return trace


def compare_traces(compiled: Trace, reference: Trace) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` at the first packet in which two traces differ."""
    ours, theirs = np.column_stack(compiled), np.column_stack(reference)
    common = min(len(ours), len(theirs))
    differ = np.flatnonzero((ours[:common] != theirs[:common]).any(axis=1))
    if len(differ) or len(ours) != len(theirs):
        place = int(differ[0]) if len(differ) else common
        said = [f"{name}: {_packet(rows, place)}" for name, rows in (("compiled", ours), ("reference", theirs))]
        raise EngineMismatch("engines differ; first: " + "; ".join(said))


def _packet(rows: Ints, place: int) -> str:
    if place >= len(rows):
        return "no such packet received"
    tick, subflow, number = rows[place].tolist()
    return f"packet {number} of subflow {subflow} received at {tick}"


def compare_counters(compiled: Any, reference: object) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` that names the first counter that differs."""
    compare_fields(compiled, reference, f"at tick {compiled.tick}")


def compare_fields(compiled: Any, reference: object, where: str) -> None:
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
