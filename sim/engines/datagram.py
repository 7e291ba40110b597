"""What a run of the datagram discipline counts, in either engine."""

from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

import numpy as np

from models.transport.feeders import with_feeders
from models.transport.session import Session
from sim.engines.base import EngineMismatch

# Columns of Counters.subflow, all of data packets.
SENT = 0  # whatever becomes of them, packets sent again included
ARRIVED = 1  # at the receiver, packets that it had already included
RECEIVED = 2  # at the receiver, each counted once
RESENT = 3
DROPPED = 4
TIMEOUTS = 5
SAMPLES = 6  # of the round trip time
RTT = 7  # their sum, ticks
SUBFLOW_COUNTS = 8

# Columns of Counters.link.
ACCEPTED = 0  # packets of any kind that a queue took
DROPS = 1
STAY = 2  # ticks from arrival to departure, summed over accepted packets
MOST = 3  # largest occupancy, bytes
MARKS = 4
LINK_COUNTS = 5


@dataclass(frozen=True)
class Counters:
    """Everything up to, not including, ``tick``.

    subflow: int64 [subflows, SUBFLOW_COUNTS]. link: int64 [links + feeders, LINK_COUNTS]. finished: int64 [flows],
    the tick at which the receiver had all of it, -1 before. cwnd: float64 [subflows], bytes.
    """

    tick: int
    subflow: np.ndarray
    link: np.ndarray
    finished: np.ndarray
    cwnd: np.ndarray


class Trace(NamedTuple):
    """Every data packet that reached its receiver, in order: int64 [packets] each."""

    tick: np.ndarray
    subflow: np.ndarray
    sequence: np.ndarray


class DatagramRun(Protocol):
    """One simulation under way."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def counters(self) -> Counters:
        """All counters now, copied."""

    def in_flight(self) -> np.ndarray:
        """int64 [subflows]: data packets in queues and on links."""

    def trace(self) -> Trace:
        """The packets received so far; only if the run was started with ``trace=True``."""


def start(engine: str, session: Session, trace: bool = False) -> DatagramRun:
    """A run at tick 0 in the engine ``reference``, ``compiled`` or ``both``. Raises ``KeyError``."""
    if engine == "compiled":
        from sim.engines.compiled.datagram import CompiledDatagrams

        return CompiledDatagrams(with_feeders(session), trace)
    if engine == "reference":
        from sim.engines.reference.datagram import ReferenceDatagrams

        return ReferenceDatagrams(with_feeders(session), trace)
    if engine == "both":
        return BothDatagrams(session)
    raise KeyError(engine)


class BothDatagrams:
    """Two runs in lock-step; every look at the counters compares all packets."""

    def __init__(self, session: Session):
        self._compiled = start("compiled", session, trace=True)
        self._reference = start("reference", session, trace=True)

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
