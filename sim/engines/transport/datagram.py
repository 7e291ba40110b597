# SPDX-License-Identifier: Apache-2.0
"""The counters of a run of mode datagram, in either engine."""

from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from typing import Protocol

import numpy as np

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.transport.newreno import Senders
from flitlab.models.transport.session import LONGEST_TRANSIT, Session
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.transport.run import TransportRun


class SubflowCount(IntEnum):
    """Columns of :attr:`Counters.subflow`, all of data packets."""

    SENT = 0  # whatever becomes of them, packets sent again included
    ARRIVED = 1  # at the receiver, packets that it had already included
    RECEIVED = 2  # at the receiver, each counted once
    RESENT = 3
    DROPPED = 4
    TIMEOUTS = 5
    SAMPLES = 6  # of the round trip time
    RTT = 7  # their sum, ticks


class LinkCount(IntEnum):
    """Columns of :attr:`Counters.link`."""

    SENT = 0  # packets of any kind that have left a queue
    DROPS = 1
    QUEUE_TICKS = 2  # that packets of any kind have been in a queue
    MAX_QUEUE_BYTES = 3  # largest occupancy, bytes
    MARKS = 4
    BYTES = 5  # that the link has sent, part of the packet in service included


@dataclass(frozen=True)
class Counters:
    """The counters of a run up to, not including, ``tick``.

    subflow: int64 [subflows, SubflowCount]. link: int64 [links + feeders, LinkCount]. finished: int64 [flows],
    the tick at which the receiver had all of it, -1 before. cwnd: float64 [subflows], bytes.
    """

    tick: int
    subflow: Ints
    link: Ints
    finished: Ints
    cwnd: Floats


class DatagramRun(TransportRun, Protocol):
    """A simulation of datagrams."""

    session: Session

    def counters(self) -> Counters:
        """All counters, copied."""

    def in_flight(self) -> Ints:
        """Data packets of each subflow in queues and on links, int64 [subflows]."""


MAX_TIMEOUTS = 10
"""Consecutive timeouts of a packet, each twice as long, after which a program over a transport counts as stalled."""


def program_status(
    session: Session, senders: Senders, received: Ints, unsent: Ints, in_flight: Ints, now: int, event_pending: bool
) -> ProgramStatus:
    """Return the outstanding work of a program over datagrams at tick ``now``.

    Dropped packets are at their hosts until they are retransmitted.

    Parameters
    ----------
    session : Session
        The simulated session.
    senders : Senders
        Of all subflows.
    received, in_flight : int64 [subflows]
        Distinct data packets at the receiver, and copies of any in the network.
    unsent : int64 [connections]
        Packets that were never sent.
    now : int
        Tick.
    event_pending : bool
        Whether an operation has a scheduled event.

    Returns
    -------
    ProgramStatus
        See there.
    """
    missing = senders.seq["high"] - received
    packets_in_flight = int(in_flight.sum())
    event_pending = event_pending or any(change.tick >= now for change in session.changes)
    waiting = max(int(unsent.sum() + missing.sum()) - packets_in_flight, 0)
    if not session.rules:  # constant rate: what is left has a timer
        return ProgramStatus(
            int(received.sum()),
            waiting,
            packets_in_flight,
            event_pending or bool(unsent.any()),
            retransmission_ticks=LONGEST_TRANSIT,
        )
    needed = (missing > 0) | np.repeat(unsent > 0, np.diff(session.first))
    retrying = needed & (senders.seq["una"] < senders.seq["high"])
    retransmission_ticks = LONGEST_TRANSIT + _timeouts(senders, retrying, session.rules[0].min_rto)
    return ProgramStatus(
        int(received.sum()), waiting, packets_in_flight, event_pending, retransmission_ticks=retransmission_ticks
    )


def _timeouts(senders: Senders, retrying: Bools, min_rto: float) -> int:
    """Ticks in which each retrying sender times out ``MAX_TIMEOUTS`` times in a row, or once more after that.

    retrying: bool [subflows].
    """
    first = np.maximum(senders.rtt + 4.0 * senders.win["mdev"], min_rto)
    longest = np.maximum(first * 2.0**MAX_TIMEOUTS, senders.win["rto"] / 2.0)
    return ceil(float(longest[retrying].max(initial=0.0)))
