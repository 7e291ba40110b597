# SPDX-License-Identifier: Apache-2.0
"""Both engines in lock-step: the results are the compiled engine's, checked packet by packet against the reference."""

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.sim.engines.base import (
    EngineMismatch,
    Execution,
    FluidRun,
    PacketLog,
    PacketProgramRun,
    ProgramStatus,
    Run,
    Scalar,
    Snapshot,
)


def describe(log: PacketLog, place: int) -> str:
    """Describe the packet at an index of a log, or the end of the log."""
    if place >= len(log.identity):
        return "no such packet delivered"
    return f"packet {log.identity[place]} delivered at {log.delivered[place]} after {log.hops[place]} hops"


def compare_logs(compiled: PacketLog, reference: PacketLog, tick: int) -> None:
    """Raise :class:`EngineMismatch` with the earliest packet in which two logs differ."""
    ours = set(zip(*(a.tolist() for a in compiled), strict=True))
    theirs = set(zip(*(a.tolist() for a in reference), strict=True))
    differing = sorted(ours ^ theirs, key=lambda packet: packet[1])
    if differing:
        identity = differing[0][0]
        sides = [
            f"{name}: {describe(log, int(np.searchsorted(log.identity, identity)))}"
            for name, log in (("compiled", compiled), ("reference", reference))
        ]
        raise EngineMismatch(
            f"engines differ before tick {tick} in {len(differing)} records; first: " + "; ".join(sides)
        )


def compare_snapshots(compiled: Snapshot, reference: Snapshot) -> None:
    """Raise :class:`EngineMismatch` with the first counter in which two snapshots differ."""
    differ = np.flatnonzero(compiled.scalars != reference.scalars)
    for place in differ[differ != Scalar.EVENTS]:
        values = f"compiled {compiled.scalars[place]}, reference {reference.scalars[place]}"
        raise EngineMismatch(f"engines differ at tick {compiled.tick}: scalar {place}: {values}")
    pairs = {
        "histogram": (compiled.histogram, reference.histogram),
        "hops": (compiled.hops, reference.hops),
        "deflections": (compiled.deflections, reference.deflections),
        "created": (compiled.created, reference.created),
        "channel_flits": (compiled.channel_flits, reference.channel_flits),
    }
    for name in ("delivered", "present"):
        flows = [getattr(s, name) for s in (compiled, reference)]
        pairs[f"{name}.pairs"] = tuple(side.pairs.table() for side in flows)
        for part in ("sources", "destinations"):
            pairs[f"{name}.{part}"] = tuple(getattr(side, part) for side in flows)
    if compiled.outstanding is not None and reference.outstanding is not None:
        for part in ("on_route", "ungranted"):
            pairs[f"outstanding.{part}"] = tuple(getattr(s.outstanding, part) for s in (compiled, reference))
    if compiled.channels is not None and reference.channels is not None:
        pairs["channels"] = compiled.channels, reference.channels
    if compiled.stalls is not None and reference.stalls is not None:
        pairs["stalls"] = compiled.stalls, reference.stalls
    if compiled.classes is not None and reference.classes is not None:
        pairs["classes"] = compiled.classes, reference.classes
    for name, (a, b) in pairs.items():
        if not np.array_equal(a, b):
            where = np.argwhere(a != b)[0].tolist()
            raise EngineMismatch(
                f"engines differ at tick {compiled.tick}: {name}{where}: compiled {a[tuple(where)]}, "
                f"reference {b[tuple(where)]}"
            )


def compare_executions(compiled: Execution, reference: Execution) -> None:
    """Raise :class:`EngineMismatch` with the first operation whose times or cause differ."""
    for name in ("ready", "start", "finish", "queued", "delivered", "cause"):
        ours, theirs = getattr(compiled, name), getattr(reference, name)
        if not np.array_equal(ours, theirs):
            first = int(np.flatnonzero(ours != theirs)[0])
            raise EngineMismatch(
                f"engines differ: {name} of operation {first}: compiled {ours[first]}, reference {theirs[first]}"
            )


class BothRun:
    """Two runs with logs in lock-step (see :class:`flitlab.sim.engines.base.Run`); a snapshot compares all packets."""

    def __init__(self, compiled: Run, reference: Run):
        self._compiled, self._reference = compiled, reference

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def scalars(self) -> Ints:
        return self._compiled.scalars()

    def backlog(self) -> Ints:
        return self._compiled.backlog()

    def snapshot(self) -> Snapshot:
        ours, theirs = self._compiled.snapshot(), self._reference.snapshot()
        compare_logs(self.log(), self._reference.log(), ours.tick)
        compare_snapshots(ours, theirs)
        return ours

    def log(self) -> PacketLog:
        return self._compiled.log()

    def deadlocked(self) -> bool:
        ours = self._compiled.deadlocked()
        if ours != self._reference.deadlocked():
            raise EngineMismatch(f"only the {'compiled' if ours else 'reference'} engine finds a deadlock")
        return ours


class BothApplicationRun(BothRun):
    """Two runs of a program in lock-step (see :class:`flitlab.sim.engines.base.ApplicationRun`), with operations
    compared.

    In mode flow, which has no packets, the methods of :class:`~flitlab.sim.engines.base.Run` are not available.
    """

    _compiled: PacketProgramRun
    _reference: PacketProgramRun

    def __init__(self, compiled: PacketProgramRun, reference: PacketProgramRun):
        super().__init__(compiled, reference)

    def snapshot(self) -> Snapshot:
        self.execution()
        return super().snapshot()

    def done(self) -> bool:
        return self._compiled.done()

    @property
    def latest(self) -> int:
        return self._compiled.latest

    def program_status(self) -> ProgramStatus:
        ours, theirs = self._compiled.program_status(), self._reference.program_status()
        if ours[1:] != theirs[1:]:
            raise EngineMismatch(f"engines differ: compiled {ours}, reference {theirs}")
        return ours

    def execution(self) -> Execution:
        ours = self._compiled.execution()
        compare_executions(ours, self._reference.execution())
        return ours

    def carried(self) -> Ints | Floats:
        return self._compiled.carried()


class BothFluidRun(BothApplicationRun):
    """Two runs of a program with fluid messages in lock-step (see :class:`flitlab.sim.engines.base.FluidRun`)."""

    _compiled: FluidRun  # type: ignore[assignment]  # fluids have no packets to be counted
    _reference: FluidRun  # type: ignore[assignment]

    def progress(self) -> Floats:
        ours, theirs = self._compiled.progress(), self._reference.progress()
        if not np.allclose(ours, theirs, rtol=1e-6, atol=1e-6):
            worst = int(np.abs(ours - theirs).argmax())
            raise EngineMismatch(f"engines differ: operation {worst} has sent {ours[worst]} and {theirs[worst]} flits")
        return ours
