# SPDX-License-Identifier: Apache-2.0
"""What a run of the datagram discipline counts, in either engine."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from flitlab.models.arrays import Floats, Ints
from flitlab.models.transport.session import Session
from flitlab.sim.engines.base import ApplicationRun, MessageLost

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
    """The counters of a run for everything up to, not including, ``tick``.

    subflow: int64 [subflows, SUBFLOW_COUNTS]. link: int64 [links + feeders, LINK_COUNTS]. finished: int64 [flows],
    the tick at which the receiver had all of it, -1 before. cwnd: float64 [subflows], bytes.
    """

    tick: int
    subflow: Ints
    link: Ints
    finished: Ints
    cwnd: Floats


class Trace(NamedTuple):
    """Every data packet that reached its receiver, in order: int64 [packets] each."""

    tick: Ints
    subflow: Ints
    sequence: Ints


class DatagramRun(Protocol):
    """One simulation of datagrams under way; given: the session that is simulated."""

    given: Session

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def counters(self) -> Counters:
        """All counters now, copied."""

    def in_flight(self) -> Ints:
        """Data packets of each subflow in queues and on links, int64 [subflows]."""

    def trace(self) -> Trace:
        """The packets received so far; only if the run was started with ``trace=True``."""


class DatagramApplicationRun(DatagramRun, ApplicationRun, Protocol):
    """One simulation of a program over datagrams under way.

    carried: ticks for which each channel has been sending, int64 [channels].
    """


def check_lossless(dropped: Ints) -> None:
    """Raise :class:`~flitlab.sim.engines.base.MessageLost` if a packet of a program without a transport was dropped.

    dropped: packets of each subflow.
    """
    if dropped.any():
        raise MessageLost
