"""Two runs of sprayed packets, compared packet by packet."""

from dataclasses import fields

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.base import EngineMismatch
from flitlab.sim.engines.spray.base import Counters, SprayRun, Trace


class BothSprays:
    """Two runs of sprayed packets in lock-step; every look at the counters compares all packets.

    See :class:`flitlab.sim.engines.spray.base.SprayRun`.
    """

    def __init__(self, compiled: SprayRun, reference: SprayRun):
        self._compiled = compiled
        self._reference = reference

    @property
    def given(self) -> SpraySession:
        return self._compiled.given

    def advance(self, until: int) -> None:
        self._compiled.advance(until)
        self._reference.advance(until)

    def counters(self) -> Counters:
        compare_traces(self.trace(), self._reference.trace())
        ours = self._compiled.counters()
        compare_counters(ours, self._reference.counters())
        return ours

    def ended(self) -> bool:
        return self._compiled.ended()

    def trace(self) -> Trace:
        return self._compiled.trace()


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
    tick, flow, number = rows[place].tolist()
    return f"{name}: packet {number} of flow {flow} received at {tick}"


def compare_counters(compiled: Counters, reference: Counters) -> None:
    """Raise :class:`~flitlab.sim.engines.base.EngineMismatch` that names the first counter that differs."""
    for field in fields(compiled):
        a, b = (np.asarray(getattr(side, field.name)) for side in (compiled, reference))
        if not np.array_equal(a, b):
            place = np.argwhere(a != b)[0]
            raise EngineMismatch(
                f"engines differ at tick {compiled.tick}: {field.name}{place.tolist()}: "
                f"compiled {a[tuple(place)]}, reference {b[tuple(place)]}"
            )
